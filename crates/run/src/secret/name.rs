//! Names with a secret value.

/// Ends of secret names, however their words are joined: `NGC_APIKEY`, `hfToken`, `X-Auth`.
const ENDS: [&str; 21] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
    "auth",
    "cookie",
    "bearer",
    "passkey",
    "passcode",
    "connectionstring",
    "apikey",
    "accesskey",
    "accountkey",
    "licensekey",
    "privatekey",
    "secretkey",
    "sshkey",
];
/// Last words that make a longer name secret, such as `MY_KEY`, and that are prose by themselves.
const WORDS: [&str; 7] = ["key", "pass", "pwd", "pat", "sig", "signature", "header"];

/// Returns true if a word begins like a flag of a command line.
pub fn is_flag(word: &str) -> bool {
    word.starts_with('-')
}

/// Returns true if the value after this name, or after this flag, is a secret.
pub fn is_secret(name: &str) -> bool {
    let words = words(name);
    let Some(last) = words.last() else { return false };
    let is_long = words.len() > 1 || is_flag(name);
    ends_secretly(&words.concat()) || (is_long && WORDS.contains(&last.as_str()))
}

/// Returns true if the value of an environment variable is a secret. Values of `TOKEN_FILE` or `KEY_1` are hidden
/// too, because no reader needs them.
pub fn is_secret_variable(name: &str) -> bool {
    let is_word_secret = |word: &String| ends_secretly(word) || WORDS.contains(&word.as_str());
    is_secret(name) || words(name).iter().any(is_word_secret)
}

/// Returns true if a text ends with the name of a variable that is secret by any of its words, such as `HF_TOKEN_OLD`. Other names
/// need a secret end: in a log `input_token_count` is a number that readers need.
pub fn ends_with_secret_variable(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let name = text.rsplit(|letter| !is_part(letter)).next().unwrap_or_default();
    name.contains('_') && is_secret_variable(name)
}

fn ends_secretly(name: &str) -> bool {
    ENDS.iter().any(|end| name.ends_with(end))
}

/// The words of a name in small letters, without the numbers after them.
fn words(name: &str) -> Vec<String> {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let words = words.map(|word| word.trim_end_matches(|letter: char| letter.is_ascii_digit()));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

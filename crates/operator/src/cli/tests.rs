use clap::CommandFactory as _;

use super::*;

fn run(args: &[&str]) -> RunArgs {
    let cli = OperatorCli::try_parse_from(["perfvalidation-operator", "run"].iter().chain(args)).unwrap();
    let Command::Run(args) = cli.command else {
        panic!("not run")
    };
    *args
}

#[test]
fn the_command_line_is_well_formed() {
    OperatorCli::command().debug_assert();
}

#[test]
fn no_namespace_means_all_of_them() {
    assert_eq!(run(&[]).scopes(), [None]);
    assert_eq!(run(&["--watch-namespaces="]).scopes(), [None]);
    assert_eq!(
        run(&["--watch-namespaces", "a, b"]).scopes(),
        [Some("a".to_owned()), Some("b".to_owned())]
    );
    assert_eq!(
        run(&["--watch-namespaces", "b, a, a"]).scopes(),
        [Some("a".to_owned()), Some("b".to_owned())],
        "each once"
    );
}

#[test]
fn kube_system_and_the_operators_own_namespace_are_refused_unless_others_are_named() {
    let refused = |args: &[&str], own| run(args).settings(own).refused_namespaces;
    assert_eq!(
        refused(&[], Some("perfvalidation-system")),
        ["kube-system", "perfvalidation-system"]
    );
    assert_eq!(refused(&[], None), ["kube-system"]);
    assert_eq!(refused(&["--refused-namespaces", "a, b"], Some("own")), ["a", "b"]);
    assert!(
        refused(&["--refused-namespaces="], Some("own")).is_empty(),
        "nothing is refused"
    );
    assert!(!run(&[]).settings(None).names_foreign_pods);
    assert!(run(&["--name-foreign-pods=true"]).settings(None).names_foreign_pods);
}

#[test]
fn a_spec_may_name_no_other_load_generator_unless_it_is_permitted() {
    let permits = |args: &[&str], image| run(args).settings(None).permits_benchmark(image);
    let own = ["--aiperf-image", "ghcr.io/x/aiperf:1"];
    assert!(permits(&own, own[1]));
    assert!(!permits(&own, "ghcr.io/x/aiperf:2"));
    assert!(permits(
        &["--benchmark-images", "quay.io/y, ghcr.io/x"],
        "ghcr.io/x/aiperf:2"
    ));
    assert!(!permits(&["--benchmark-images="], "ghcr.io/x/aiperf:2"));
}

#[test]
fn a_run_has_a_network_policy_where_rules_are_given() {
    let rules = |args: &[&str]| run(args).settings(None).run_network_policy;
    assert_eq!(rules(&[]), None);
    assert_eq!(rules(&["--run-network-policy=[]"]).unwrap(), []);
    let operator = r#"[{"from": [{"namespaceSelector": {}}], "ports": [{"port": "http", "protocol": "TCP"}]}]"#;
    assert_eq!(rules(&["--run-network-policy", operator]).unwrap().len(), 1);
    // Read without its misspelt field, this rule would admit everyone.
    let misspelt = r#"[{"form": [{"namespaceSelector": {}}]}]"#;
    for wrong in ["", "{}", "true", r#"[{"from": null}]"#, misspelt] {
        let refused = OperatorCli::try_parse_from(["perfvalidation-operator", "run", "--run-network-policy", wrong]);
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("--run-network-policy"), "{words}");
    }
}

#[test]
fn a_dcgm_exporter_is_looked_for_only_where_administrators_run_it() {
    let namespaces = |args: &[&str]| run(args).settings(None).dcgm_exporter_namespaces;
    assert_eq!(namespaces(&[]), ["gpu-operator", "nvidia-gpu-operator"]);
    assert_eq!(
        namespaces(&["--dcgm-exporter-namespaces", "monitoring, gpu"]),
        ["monitoring", "gpu"]
    );
    assert!(namespaces(&["--dcgm-exporter-namespaces="]).is_empty(), "in none");
}

#[test]
fn every_flag_has_a_twin_in_the_environment_named_after_it() {
    let cli = OperatorCli::command();
    let flags: Vec<_> = cli
        .find_subcommand("run")
        .unwrap()
        .get_arguments()
        .filter_map(|a| Some((a.get_long()?, a.get_env())))
        .collect();
    assert!(flags.len() >= 12, "{flags:?}");
    for (long, env) in flags.into_iter().filter(|(long, _)| *long != "help") {
        let expected = format!("PERFVAL_{}", long.replace('-', "_").to_uppercase());
        assert_eq!(env.unwrap().to_string_lossy(), expected);
    }
}

#[test]
fn an_empty_image_domain_lease_or_log_level_is_refused() {
    for flag in ["--aiperf-image", "--cluster-domain", "--leader-elect-name", "--log"] {
        let parsed = OperatorCli::try_parse_from(["perfvalidation-operator", "run", flag, ""]);
        assert!(parsed.is_err(), "{flag}");
    }
}

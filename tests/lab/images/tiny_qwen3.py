"""Makes the model `lab/tiny-qwen3` as a Hugging Face cache: a tokenizer and a Qwen3-shaped config, no weights.

Dynamo's mocker and AIPerf need no more. It must be a cache: AIPerf takes neither a path nor a folder for an id.
Usage: tiny_qwen3.py CORPUS HF_HOME
"""

import hashlib
import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

# 795 entries gave empty completions with right token counts; 4,096 give text.
VOCABULARY = 4096
START, END = "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}" + START + "{{ message['role'] }}\n{{ message['content'] }}" + END + "\n{% endfor %}"
    "{% if add_generation_prompt %}" + START + "assistant\n{% endif %}"
)


def train(corpus: Path) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, START],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train([str(corpus)], trainer)
    assert tokenizer.get_vocab_size() == VOCABULARY, tokenizer.get_vocab_size()
    return tokenizer


def snapshot(tokenizer: Tokenizer) -> dict[str, str]:
    end = tokenizer.token_to_id(END)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "hidden_act": "silu",
        "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": end,
        "eos_token_id": end,
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 40960,
        "eos_token": END,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    files = {
        "config.json": config,
        "generation_config.json": {"bos_token_id": end, "eos_token_id": [end], "pad_token_id": end},
        "tokenizer_config.json": tokenizer_config,
    }
    return {"tokenizer.json": tokenizer.to_str()} | {name: json.dumps(file, indent=2) for name, file in files.items()}


def main(corpus: Path, hf_home: Path) -> None:
    files = snapshot(train(corpus))
    revision = hashlib.sha1("".join(files[name] for name in sorted(files)).encode()).hexdigest()
    model = hf_home / "hub" / "models--lab--tiny-qwen3"
    folder = model / "snapshots" / revision
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(revision)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

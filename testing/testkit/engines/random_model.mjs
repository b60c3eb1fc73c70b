// A language model with random weights as a GGUF file: the architecture of Llama, with one token for each byte.

import fs from "node:fs";

const VOCABULARY = 256;
const [END, WIDTH, LAYERS, HEADS, INNER] = [VOCABULARY, 64, 2, 4, 128];
/** The numbers of the types in the format. */
const [UINT32, FLOAT32, BOOL, STRING, ARRAY] = [4, 6, 7, 8, 9];
const INT32 = 5;
const ALIGNMENT = 32;

/** The characters with which byte-level vocabularies write the 256 bytes. */
function byteTokens() {
  const isPlain = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPlain(byte) ? byte : next++));
}

/** Random numbers with a normal distribution. */
function normal(seed) {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 1) / 4294967297;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

class Bytes {
  parts = [];
  length = 0;

  add(part) {
    this.parts.push(part);
    this.length += part.length;
  }

  number(size, write) {
    const part = Buffer.alloc(size);
    write(part);
    this.add(part);
  }

  uint32(value) {
    this.number(4, (part) => part.writeUInt32LE(value));
  }

  uint64(value) {
    this.number(8, (part) => part.writeBigUInt64LE(BigInt(value)));
  }

  string(text) {
    const bytes = Buffer.from(text);
    this.uint64(bytes.length);
    this.add(bytes);
  }

  value(type, value) {
    if (type === STRING) this.string(value);
    else if (type === FLOAT32) this.number(4, (part) => part.writeFloatLE(value));
    else if (type === BOOL) this.number(1, (part) => part.writeUInt8(value ? 1 : 0));
    else this.uint32(value);
  }

  align() {
    this.add(Buffer.alloc((ALIGNMENT - (this.length % ALIGNMENT)) % ALIGNMENT));
  }
}

/** Writes the model to a file. */
export function writeRandomModel(path, seed) {
  const random = normal(seed);
  const weights = (scale, ...shape) => ({ shape, next: () => random() * scale });
  const ones = { shape: [WIDTH], next: () => 1 };
  const tensors = { "token_embd.weight": weights(1, WIDTH, VOCABULARY + 1) };
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const at = `blk.${layer}.`;
    tensors[`${at}attn_norm.weight`] = tensors[`${at}ffn_norm.weight`] = ones;
    for (const name of ["attn_q", "attn_k", "attn_v", "attn_output"]) tensors[`${at}${name}.weight`] = weights(0.1, WIDTH, WIDTH);
    for (const name of ["ffn_gate", "ffn_up"]) tensors[`${at}${name}.weight`] = weights(0.1, WIDTH, INNER);
    tensors[`${at}ffn_down.weight`] = weights(0.1, INNER, WIDTH);
  }
  tensors["output_norm.weight"] = ones;
  tensors["output.weight"] = weights(0.3, WIDTH, VOCABULARY + 1);

  const tokens = [...byteTokens(), "<|end|>"];
  const [NORMAL, CONTROL] = [1, 3];
  const metadata = [
    ["general.architecture", STRING, "llama"],
    ["llama.context_length", UINT32, 4096],
    ["llama.embedding_length", UINT32, WIDTH],
    ["llama.block_count", UINT32, LAYERS],
    ["llama.feed_forward_length", UINT32, INNER],
    ["llama.attention.head_count", UINT32, HEADS],
    ["llama.attention.head_count_kv", UINT32, HEADS],
    ["llama.rope.dimension_count", UINT32, WIDTH / HEADS],
    ["llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5],
    ["llama.vocab_size", UINT32, VOCABULARY + 1],
    ["tokenizer.ggml.model", STRING, "gpt2"],
    ["tokenizer.ggml.pre", STRING, "gpt-2"],
    ["tokenizer.ggml.tokens", ARRAY, [STRING, tokens]],
    ["tokenizer.ggml.token_type", ARRAY, [INT32, tokens.map((_, token) => (token === END ? CONTROL : NORMAL))]],
    // The key must exist; the merged token is not in the vocabulary.
    ["tokenizer.ggml.merges", ARRAY, [STRING, ["! !"]]],
    ["tokenizer.ggml.bos_token_id", UINT32, END],
    ["tokenizer.ggml.eos_token_id", UINT32, END],
    ["tokenizer.ggml.add_bos_token", BOOL, true],
  ];

  const file = new Bytes();
  file.add(Buffer.from("GGUF"));
  file.uint32(3);
  file.uint64(Object.keys(tensors).length);
  file.uint64(metadata.length);
  for (const [key, type, value] of metadata) {
    file.string(key);
    file.uint32(type);
    if (type !== ARRAY) {
      file.value(type, value);
      continue;
    }
    const [itemType, items] = value;
    file.uint32(itemType);
    file.uint64(items.length);
    for (const item of items) file.value(itemType, item);
  }
  // The sizes of all tensors are multiples of the alignment.
  let offset = 0;
  const count = (tensor) => tensor.shape.reduce((product, size) => product * size, 1);
  for (const [name, tensor] of Object.entries(tensors)) {
    file.string(name);
    file.uint32(tensor.shape.length);
    for (const size of tensor.shape) file.uint64(size);
    file.uint32(0); // 32-bit floats
    file.uint64(offset);
    offset += 4 * count(tensor);
  }
  file.align();
  for (const tensor of Object.values(tensors)) {
    file.add(Buffer.from(Float32Array.from({ length: count(tensor) }, tensor.next).buffer));
  }
  fs.writeFileSync(path, Buffer.concat(file.parts));
}

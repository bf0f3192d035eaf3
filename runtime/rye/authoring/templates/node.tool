// ---
// version: "1.0.0"
// tool_type: node
// executor_id: $runtime
// category: $category
// description: Count the lines and words of a file
// item_id: $item_id
// permissions: [read]
// config_schema:
//   type: object
//   properties:
//     file_path: {type: string, format: workspace-path, description: Path to the file}
//   required: [file_path]
//   additionalProperties: false
// effects: {read_only: true, destructive: false, idempotent: true, open_world: false}
// ---
// It starts in the project's root. Parameters come as JSON on standard input; one JSON object is the result.
const fs = require("node:fs");

const { file_path } = JSON.parse(fs.readFileSync(0, "utf8"));
const text = fs.readFileSync(file_path, "utf8");
const line_count = text.split("\n").length - 1;
const word_count = text.split(/\s+/).filter(Boolean).length;
console.log(JSON.stringify({ output: `$${line_count} lines, $${word_count} words`, line_count, word_count }));

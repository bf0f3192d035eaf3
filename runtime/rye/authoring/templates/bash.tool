# ---
# version: "1.0.0"
# tool_type: bash
# executor_id: $runtime
# category: $category
# description: Count the lines and words of a file
# item_id: $item_id
# permissions: [read, run]
# config_schema:
#   type: object
#   properties:
#     file_path: {type: string, format: workspace-path, description: Path to the file}
#   required: [file_path]
#   additionalProperties: false
# ---
# It starts in the project's root. Parameters come as variables PARAM_name, and as JSON on standard input.
set -eu
lines=$$(wc -l < "$$PARAM_file_path")
words=$$(wc -w < "$$PARAM_file_path")
# One JSON object is the result; other text would be its output.
printf '{"output": "%d lines, %d words", "line_count": %d, "word_count": %d}\n' "$$lines" "$$words" "$$lines" "$$words"

$first$mark ---
$mark version: "1.0.0"
$mark tool_type: script
$mark executor_id: $runtime
$mark category: $category
$mark description: Say here in one line what it does
$mark item_id: $item_id
$mark permissions: [read]
$mark config_schema:
$mark   type: object
$mark   properties:
$mark     text: {type: string, description: A text}
$mark   required: [text]
$mark   additionalProperties: false
$mark ---
$mark It starts in the project's root. Parameters come as $given.
$mark What it prints is the result: one JSON object with "output", or text. Write the program below.

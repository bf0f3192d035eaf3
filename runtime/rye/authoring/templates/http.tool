version: "1.0.0"
tool_type: http
executor_id: $runtime
category: $category
description: The latest version of a Python package on PyPI
item_id: $item_id
permissions: [network]
config_schema:
  type: object
  properties:
    name: {type: string, description: Name of the package}
  required: [name]
  additionalProperties: false
config:
  # A parameter is one part of the path or the query, percent-encoded; the host is fixed.
  url: "https://pypi.org/pypi/{name}/json"
  response: {output: info.version, fields: {summary: info.summary}}

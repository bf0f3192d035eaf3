# ---
# version: "1.0.0"
# tool_type: bash
# executor_id: rye/core/runtimes/bash_script_runtime
# category: conformance
# description: Prints in three steps
# permissions: [run]
# config_schema: {type: object, properties: {}}
# ---
for step in 0 50 100; do
    echo "$step of 100"
    sleep 0.3
done

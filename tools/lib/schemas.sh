build_schemas() { :; }

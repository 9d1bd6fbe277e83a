"""The families of scenarios, by domain; `integration.scenarios.catalogue` lists them all."""

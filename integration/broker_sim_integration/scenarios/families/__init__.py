"""The families of scenarios, by domain; `broker_sim_integration.scenarios.catalogue` lists them all."""

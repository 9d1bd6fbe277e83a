"""Regular expressions in Kafka's two dialects: RE2/J for clients' expressions, Java for configurations."""

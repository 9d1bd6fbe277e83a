import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints every configuration of Kafka, one a line: kind, name, type, default, allowed, mode. */
public class ConfigFacts {
    public static void main(String[] args) {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        for (ConfigDef.ConfigKey key : AbstractKafkaConfig.CONFIG_DEF.configKeys().values()) {
            print("broker", key, modes.getOrDefault(key.name, "read-only"));
        }
        for (ConfigDef.ConfigKey key : LogConfig.configKeys().values()) {
            String synonym = ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.get(key.name);
            print("topic", key, String.valueOf(synonym));
        }
        printAll("group", GroupConfig.CONFIG_DEF);
        printAll("client quota", QuotaConfig.userAndClientQuotaConfigs());
        printAll("connection quota", QuotaConfig.ipConfigs());
    }

    private static void printAll(String kind, ConfigDef configs) {
        for (ConfigDef.ConfigKey key : configs.configKeys().values()) {
            print(kind, key, "");
        }
    }

    private static void print(String kind, ConfigDef.ConfigKey key, String last) {
        String value = key.hasDefault()
            ? String.valueOf(ConfigDef.convertToString(key.defaultValue, key.type)) : "required";
        System.out.println(String.join("\t", kind, key.name, key.type.name(), value,
            String.valueOf(key.validator), String.valueOf(key.internalConfig), last));
    }
}

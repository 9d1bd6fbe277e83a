import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints every configuration of Kafka, one a line: kind, name, type, default, allowed, mode.
 *
 * Kafka 4.3 has moved two of the classes and their members, hence the reflection for 4.0 to 4.2.
 */
public class ConfigFacts {
    public static void main(String[] args) throws Exception {
        Map<?, ?> modes = updateModes();
        for (ConfigDef.ConfigKey key : AbstractKafkaConfig.CONFIG_DEF.configKeys().values()) {
            Object mode = modes.get(key.name);
            print("broker", key, mode == null ? "read-only" : String.valueOf(mode));
        }
        for (ConfigDef.ConfigKey key : LogConfig.configKeys().values()) {
            String synonym = ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.get(key.name);
            print("topic", key, String.valueOf(synonym));
        }
        printAll("group", groupConfigs());
        printAll("client quota", QuotaConfig.userAndClientQuotaConfigs());
        printAll("connection quota", QuotaConfig.ipConfigs());
    }

    private static Map<?, ?> updateModes() throws Exception {
        Class<?> owner;
        Object instance = null;
        try {
            owner = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig");
        } catch (ClassNotFoundException stillInScala) {
            owner = Class.forName("kafka.server.DynamicBrokerConfig$");
            instance = owner.getField("MODULE$").get(null);
        }
        return (Map<?, ?>) owner.getMethod("dynamicConfigUpdateModes").invoke(instance);
    }

    private static ConfigDef groupConfigs() throws Exception {
        try {
            return (ConfigDef) GroupConfig.class.getField("CONFIG_DEF").get(null);
        } catch (NoSuchFieldException stillPrivate) {
            return (ConfigDef) GroupConfig.class.getMethod("configDef").invoke(null);
        }
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
            limits(key), String.valueOf(key.internalConfig), last));
    }

    /** Returns Kafka's text for the limits, and for a list that must not be empty these words before it. */
    private static String limits(ConfigDef.ConfigKey key) {
        String text = String.valueOf(key.validator);
        if (!(key.validator instanceof ConfigDef.ValidList)) {
            return text;
        }
        try {
            key.validator.ensureValid(key.name, List.of());
            return text;
        } catch (ConfigException empty) {
            return ("not empty " + text).strip();
        }
    }
}

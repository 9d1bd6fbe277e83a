import java.lang.reflect.Method;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * Prints the facts of the Kafka release on the class path, one a line:
 * "api, id, name, oldest version, latest version" and "feature, name, minimum, maximum, default". Lines of versions and
 * levels that the release marks as unstable begin with "unstable-api" and "unstable-feature"; its brokers
 * advertise them only where they are enabled.
 *
 * The classes changed names and methods from release to release, hence the reflection.
 */
public class ReleaseFacts {
    private static final String COMMON = "org.apache.kafka.server.common.";
    private static boolean printsUnstable;

    /**
     * The first argument is the listener whose APIs are printed: BROKER, or ZK_BROKER. The second one is "unstable" if
     * the release's classes tell which versions and levels are.
     */
    public static void main(String[] args) throws Exception {
        printsUnstable = args[1].equals("unstable");
        for (ApiKeys key : ApiKeys.values()) {
            short latest = latestVersion(key, false);
            if (isServed(key, args[0]) && latest >= key.oldestVersion()) {
                print("api", key.id, key.name(), key.oldestVersion(), latest);
            }
            short unstable = latestVersion(key, true);
            if (printsUnstable && isServed(key, args[0]) && unstable > latest) {
                print("unstable-api", key.id, key.name(), key.oldestVersion(), unstable);
            }
        }
        if (args[0].equals("BROKER")) {
            printMetadataVersion();
            printFeatures();
        }
    }

    private static short latestVersion(ApiKeys key, boolean unstable) throws Exception {
        try {
            return (Short) ApiKeys.class.getMethod("latestVersion", boolean.class).invoke(key, unstable);
        } catch (NoSuchMethodException noUnstableVersionsYet) {
            return key.latestVersion();
        }
    }

    private static boolean isServed(ApiKeys key, String listener) throws Exception {
        Class<?> listeners;
        try {
            listeners = Class.forName("org.apache.kafka.common.message.ApiMessageType$ListenerType");
        } catch (ClassNotFoundException onlyOneKindYet) {
            return true;
        }
        Object wanted = listeners.getField(listener).get(null);
        return (Boolean) ApiKeys.class.getMethod("inScope", listeners).invoke(key, wanted);
    }

    private static void printMetadataVersion() throws Exception {
        Class<?> versions = Class.forName(COMMON + "MetadataVersion");
        Object first;
        try {
            first = versions.getField("MINIMUM_VERSION").get(null);
        } catch (NoSuchFieldException before4) {
            first = versions.getField("MINIMUM_KRAFT_VERSION").get(null);
        }
        Method level = versions.getMethod("featureLevel");
        Object last = latestMetadataVersion(versions);
        print("feature", "metadata.version", level.invoke(first), level.invoke(last), level.invoke(last));
        if (printsUnstable) {
            Object testing = versions.getMethod("latestTesting").invoke(null);
            print("unstable-feature", "metadata.version", level.invoke(first), level.invoke(testing), level.invoke(last));
        }
    }

    private static Object latestMetadataVersion(Class<?> versions) throws Exception {
        try {
            return versions.getField("LATEST_PRODUCTION").get(null);
        } catch (NoSuchFieldException allAreForProduction) {
            return versions.getMethod("latest").invoke(null);
        }
    }

    private static void printFeatures() throws Exception {
        Class<?> features;
        try {
            features = Class.forName(COMMON + "Feature");
        } catch (ClassNotFoundException onlyMetadataVersion) {
            return;
        }
        Class<?> versions = Class.forName(COMMON + "MetadataVersion");
        Object newest = latestMetadataVersion(versions);
        for (Object feature : (Iterable<?>) features.getField("PRODUCTION_FEATURES").get(null)) {
            print(
                "feature",
                features.getMethod("featureName").invoke(feature),
                features.getMethod("minimumProduction").invoke(feature),
                features.getMethod("latestProduction").invoke(feature),
                features.getMethod("defaultLevel", versions).invoke(feature, newest));
            Short production = (Short) features.getMethod("latestProduction").invoke(feature);
            Short testing = (Short) features.getMethod("latestTesting").invoke(feature);
            if (printsUnstable && testing > production) {
                print(
                    "unstable-feature",
                    features.getMethod("featureName").invoke(feature),
                    features.getMethod("minimumProduction").invoke(feature),
                    testing,
                    features.getMethod("defaultLevel", versions).invoke(feature, newest));
            }
        }
    }

    private static void print(Object... facts) {
        StringBuilder line = new StringBuilder();
        for (Object fact : facts) {
            line.append(line.length() == 0 ? "" : "\t").append(fact);
        }
        System.out.println(line);
    }
}

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * Prints the sets of characters that RE2/J knows, one a line: "class, name, ranges, ranges that differ
 * in case only", then "fold, characters" with all groups of characters that differ in case only.
 */
public class RegexFacts {
    public static void main(String[] args) throws Exception {
        print("CATEGORIES", "FOLD_CATEGORIES");
        print("SCRIPTS", "FOLD_SCRIPT");
        Method simpleFold = Class.forName("com.google.re2j.Unicode").getDeclaredMethod("simpleFold", int.class);
        simpleFold.setAccessible(true);
        List<String> orbits = new ArrayList<>();
        for (int first = 0; first <= Character.MAX_CODE_POINT; first++) {
            List<Integer> orbit = new ArrayList<>(List.of(first));
            for (int next = (int) simpleFold.invoke(null, first); next != first; next = (int) simpleFold.invoke(null, next)) {
                if (next < first || orbit.contains(next)) {
                    orbit.clear(); // belongs to a smaller character
                    break;
                }
                orbit.add(next);
            }
            if (orbit.size() > 1) {
                orbits.add(orbit.stream().map(Integer::toHexString).collect(Collectors.joining("-")));
            }
        }
        System.out.println("fold\t" + String.join(",", orbits));
    }

    private static void print(String name, String foldName) throws Exception {
        Map<String, int[][]> folds = table(foldName);
        for (Map.Entry<String, int[][]> each : new TreeMap<>(table(name)).entrySet()) {
            System.out.println(String.join("\t", "class", each.getKey(), text(each.getValue()), text(folds.get(each.getKey()))));
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, int[][]> table(String name) throws Exception {
        Field field = Class.forName("com.google.re2j.UnicodeTables").getDeclaredField(name);
        field.setAccessible(true);
        return (Map<String, int[][]>) field.get(null);
    }

    /** "first-last/stride", in hexadecimal digits and with commas between. */
    private static String text(int[][] ranges) {
        if (ranges == null) {
            return "";
        }
        List<String> parts = new ArrayList<>();
        for (int[] range : ranges) {
            String first = Integer.toHexString(range[0]);
            String more = range[1] == range[0] ? "" : "-" + Integer.toHexString(range[1]);
            parts.add(first + more + (range[2] == 1 || more.isEmpty() ? "" : "/" + range[2]));
        }
        return String.join(",", parts);
    }
}

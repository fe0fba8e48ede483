package io.github.wollemi;

import java.util.ArrayList;
import java.util.List;

/**
 * The result of a check of the whole pool.
 *
 * @param isClean whether no fault was found
 * @param faults one line per fault
 * @param json the whole report, as {@code wollemi check --json} prints it
 */
public record Check(boolean isClean, List<String> faults, String json) {
    static Check of(byte[] bytes) {
        Packed packed = new Packed(bytes);
        boolean clean = packed.next()[0] == 1;
        String json = packed.text();
        List<String> faults = new ArrayList<>();
        while (packed.hasNext()) {
            faults.add(packed.text());
        }
        return new Check(clean, List.copyOf(faults), json);
    }
}

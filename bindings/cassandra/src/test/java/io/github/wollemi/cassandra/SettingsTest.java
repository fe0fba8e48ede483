package io.github.wollemi.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.wollemi.Level;
import java.util.HashMap;
import java.util.Map;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.junit.jupiter.api.Test;

/** The meaning of a configuration's parameters, and which values are refused. */
class SettingsTest {
    private static WollemiFactory factory(Map<String, String> parameters) {
        return new WollemiFactory(Settings.take(new HashMap<>(parameters)));
    }

    private static void refuses(Map<String, String> parameters, String because) {
        ConfigurationException refused = assertThrows(ConfigurationException.class, () -> factory(parameters));
        assertTrue(refused.getMessage().contains(because), refused.getMessage());
    }

    @Test
    void sayWhatCassandraMayRelyOn() {
        WollemiFactory usual = factory(Map.of("directory", "/d"));
        assertEquals(Level.PROCESS, usual.settings().level());
        assertEquals(1L << 30, usual.settings().flushSize());
        assertEquals("false false", usual.writesAreDurable() + " " + usual.writesShouldSkipCommitLog());

        WollemiFactory skip = factory(Map.of("directory", "/d", "commit_log", "skip"));
        assertEquals("true true", skip.writesAreDurable() + " " + skip.writesShouldSkipCommitLog());

        WollemiFactory disk = factory(Map.of("directory", "/d", "level", "disk", "flush_size", "64MiB"));
        assertEquals(64L << 20, disk.settings().flushSize());
        assertEquals("true false", disk.writesAreDurable() + " " + disk.writesShouldSkipCommitLog());
    }

    @Test
    void areEqualIfTheirParametersAre() {
        assertEquals(factory(Map.of("directory", "/d/../e")), factory(Map.of("directory", "/e", "commit_log", "keep")));
    }

    @Test
    void areTakenSoThatCassandraSeesThoseThatAreLeft() {
        Map<String, String> parameters = new HashMap<>(Map.of("directory", "/d", "level", "disk", "colour", "green"));
        Settings.take(parameters);
        assertEquals(Map.of("colour", "green"), parameters);
    }

    @Test
    void areRefusedWithAReason() {
        refuses(Map.of(), "no parameter 'directory'");
        refuses(Map.of("directory", "/d", "level", "paper"), "one of process, disk, power");
        refuses(Map.of("directory", "/d", "commit_log", "KEEP"), "one of keep, skip");
        refuses(Map.of("directory", "/d", "flush_size", "much"), "512MiB");
        refuses(Map.of("directory", "/d", "flush_size", "1KiB"), "at least 1MiB");
    }
}

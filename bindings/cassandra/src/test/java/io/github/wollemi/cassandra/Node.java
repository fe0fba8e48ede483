package io.github.wollemi.cassandra;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.QueryOptions;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import com.datastax.driver.core.policies.RoundRobinPolicy;
import com.datastax.driver.core.policies.WhiteListPolicy;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** A node with its folder, which a test may start and stop repeatedly. */
final class Node implements AutoCloseable {
    private static final String OPEN = "=ALL-UNNAMED";
    /** The options that Cassandra needs on Java 17. */
    private static final List<String> MODULES = List.of(
            "--add-exports=java.base/jdk.internal.misc" + OPEN,
            "--add-exports=java.base/jdk.internal.ref" + OPEN,
            "--add-exports=java.base/sun.nio.ch" + OPEN,
            "--add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi" + OPEN,
            "--add-exports=java.rmi/sun.rmi.registry" + OPEN,
            "--add-exports=java.rmi/sun.rmi.server" + OPEN,
            "--add-exports=java.sql/java.sql" + OPEN,
            "--add-exports=jdk.unsupported/sun.misc" + OPEN,
            "--add-opens=java.base/java.io" + OPEN,
            "--add-opens=java.base/java.lang" + OPEN,
            "--add-opens=java.base/java.lang.module" + OPEN,
            "--add-opens=java.base/java.nio" + OPEN,
            "--add-opens=java.base/java.util" + OPEN,
            "--add-opens=java.base/java.util.concurrent" + OPEN,
            "--add-opens=java.base/java.util.concurrent.atomic" + OPEN,
            "--add-opens=java.base/jdk.internal.loader" + OPEN,
            "--add-opens=java.base/jdk.internal.math" + OPEN,
            "--add-opens=java.base/jdk.internal.module" + OPEN,
            "--add-opens=java.base/jdk.internal.ref" + OPEN,
            "--add-opens=java.base/jdk.internal.reflect" + OPEN,
            "--add-opens=java.base/jdk.internal.util.jar" + OPEN,
            "--add-opens=java.base/sun.nio.ch" + OPEN,
            "--add-opens=jdk.management/com.sun.management.internal" + OPEN);

    /** Java options of a small node that starts quickly. */
    private static final List<String> SMALL = List.of("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC");
    /** Java options of Cassandra's own configuration, for measurements. */
    private static final List<String> AS_SHIPPED = List.of("-XX:+UseG1GC", "-XX:+ParallelRefProcEnabled",
            "-XX:MaxTenuringThreshold=1", "-XX:G1HeapRegionSize=16m", "-XX:G1RSetUpdatingPauseTimePercent=5",
            "-XX:MaxGCPauseMillis=300", "-XX:InitiatingHeapOccupancyPercent=70", "-XX:+PerfDisableSharedMem",
            "-Dio.netty.tryReflectionSetAccessible=true", "-Xlog:gc:file=gc.log");
    /** Upper bound on the wait for a node's answer, in minutes; beyond it the node counts as hung. */
    private static final int MAX_ANSWER = 10;

    private final Path folder;
    private final String address;
    private final List<String> seeds;
    private final int nativePort;
    private final int storagePort;
    private final String writeTimeout;
    private final List<String> options;
    private final Map<String, String> settings;

    private Process process;
    /** Lines from the process; an empty value at its end. */
    private BlockingQueue<Optional<String>> answers;
    private OutputStream commands;
    private Cluster cluster;
    private Session session;

    /** @param settings settings that replace those of the tests' {@code cassandra.yaml} */
    private Node(Path folder, String address, List<String> seeds, int nativePort, int storagePort, String writeTimeout,
            List<String> options, Map<String, String> settings) {
        this.folder = folder;
        this.address = address;
        this.seeds = seeds;
        this.nativePort = nativePort;
        this.storagePort = storagePort;
        this.writeTimeout = writeTimeout;
        this.options = options;
        this.settings = settings;
    }

    /** Returns a cluster of one node. */
    static Node alone(Path folder) {
        return alone(folder, SMALL, Map.of());
    }

    /**
     * Returns a cluster of one node for measurements, with the Java options that Cassandra is shipped with.
     *
     * @param heapMib the size of its heap
     * @param settings settings that replace those of the tests' {@code cassandra.yaml}
     */
    static Node measured(Path folder, int heapMib, Map<String, String> settings) {
        return alone(folder, asShipped(heapMib), settings);
    }

    private static List<String> asShipped(int heapMib) {
        List<String> options = new ArrayList<>(AS_SHIPPED);
        options.addAll(List.of("-Xms" + heapMib + "m", "-Xmx" + heapMib + "m"));
        return options;
    }

    private static Node alone(Path folder, List<String> options, Map<String, String> settings) {
        String address = "127.0.0.1";
        int nativePort = freePort(address);
        int storagePort = freePort(address);
        return new Node(folder, address, List.of(address), nativePort, storagePort, "120s", options, settings);
    }

    /**
     * Returns the nodes of a cluster, on 127.0.0.1 and the addresses after it; all are seeds, and use the same ports.
     */
    static List<Node> cluster(Path folder, int size) {
        return cluster(folder, size, SMALL, Map.of());
    }

    /** Returns the nodes of a cluster for measurements, like {@link #measured} and {@link #cluster}. */
    static List<Node> measuredCluster(Path folder, int size, int heapMib, Map<String, String> settings) {
        return cluster(folder, size, asShipped(heapMib), settings);
    }

    private static List<Node> cluster(Path folder, int size, List<String> options, Map<String, String> settings) {
        List<String> addresses = new ArrayList<>();
        for (int i = 1; i <= size; i++) {
            addresses.add("127.0.0." + i);
        }
        int nativePort = freePort("0.0.0.0");
        int storagePort = freePort("0.0.0.0");
        // A write that a dead node does not answer becomes a hint after this time.
        return addresses.stream().map(address -> new Node(folder.resolve(address), address, addresses, nativePort,
                storagePort, "10s", options, settings)).toList();
    }

    static int freePort(String address) {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(address))) {
            return socket.getLocalPort();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    Path folder() {
        return folder;
    }

    InetSocketAddress client() {
        return new InetSocketAddress(address, nativePort);
    }

    /** Returns the folder of the pools. */
    Path pools() {
        return folder.resolve("wollemi");
    }

    private String yaml() {
        String all = seeds.stream().map(seed -> seed + ":" + storagePort).collect(Collectors.joining(","));
        String yaml = """
                cluster_name: test
                num_tokens: 1
                partitioner: org.apache.cassandra.dht.Murmur3Partitioner
                # A coordinator reads from itself first.
                endpoint_snitch: RackInferringSnitch
                listen_address: ADDRESS
                rpc_address: ADDRESS
                storage_port: STORAGE
                native_transport_port: NATIVE
                start_native_transport: true
                seed_provider:
                  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
                    parameters: [{seeds: "SEEDS"}]
                data_file_directories: [FOLDER/data]
                commitlog_directory: FOLDER/commitlog
                hints_directory: FOLDER/hints
                saved_caches_directory: FOLDER/saved
                cdc_raw_directory: FOLDER/cdc
                # What was acknowledged is in the log, so that tables with a log can be compared after a kill.
                commitlog_sync: batch
                commitlog_segment_size: 8MiB
                auto_snapshot: false
                # A stalled disk is no failure.
                native_transport_timeout: 120s
                request_timeout: 120s
                read_request_timeout: 120s
                range_request_timeout: 120s
                write_request_timeout: WRITE
                counter_write_request_timeout: 120s
                cas_contention_timeout: 120s
                truncate_request_timeout: 120s
                concurrent_reads: 8
                concurrent_writes: 8
                concurrent_compactors: 1
                key_cache_size: 1MiB
                networking_cache_size: 8MiB
                file_cache_size: 32MiB
                dynamic_snitch: false
                hinted_handoff_throttle: 64MiB
                hints_flush_period: 1s
                user_defined_functions_enabled: false
                materialized_views_enabled: true
                memtable:
                  configurations:
                    skiplist:
                      class_name: SkipListMemtable
                    trie:
                      class_name: TrieMemtable
                README
                    wollemi_disk:
                      class_name: io.github.wollemi.cassandra.WollemiMemtable
                      parameters: {directory: FOLDER/wollemi, commit_log: skip, level: disk}
                    wollemi_keep:
                      class_name: io.github.wollemi.cassandra.WollemiMemtable
                      parameters: {directory: FOLDER/wollemi}
                    wollemi_small:
                      class_name: io.github.wollemi.cassandra.WollemiMemtable
                      parameters: {directory: FOLDER/wollemi, commit_log: skip, flush_size: 1MiB}
                    wollemi_large:
                      class_name: io.github.wollemi.cassandra.WollemiMemtable
                      parameters: {directory: FOLDER/wollemi, commit_log: skip, flush_size: 4GiB}
                    wollemi_disk_large:
                      class_name: io.github.wollemi.cassandra.WollemiMemtable
                      parameters: {directory: FOLDER/wollemi, commit_log: skip, level: disk, flush_size: 4GiB}
                """
                .replace("README\n", Readme.block("yaml").replaceFirst("memtable:\n *configurations:\n", ""))
                .replace("/var/lib/cassandra", "FOLDER")
                .replace("ADDRESS", address).replace("STORAGE", "" + storagePort).replace("NATIVE", "" + nativePort)
                .replace("SEEDS", all).replace("WRITE", writeTimeout).replace("FOLDER", folder.toString());
        for (Map.Entry<String, String> setting : settings.entrySet()) {
            String name = setting.getKey() + ": ";
            yaml = yaml.replaceAll("(?m)^" + name + ".*\n", "") + name + setting.getValue() + "\n";
        }
        return yaml;
    }

    /** Returns the processor time that its process has taken, in seconds. */
    double processorSeconds() {
        return process.info().totalCpuDuration().orElseThrow().toNanos() / 1e9;
    }

    /** Starts it, and returns when it accepts requests. */
    Node start() {
        try {
            Files.createDirectories(folder);
            Path yaml = Files.writeString(folder.resolve("cassandra.yaml"), yaml());
            List<String> command = new ArrayList<>();
            command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
            command.addAll(MODULES);
            command.addAll(options);
            command.addAll(List.of(
                    "-cp", System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                    "-ea", "-da:net.openhft...", "-Djdk.attach.allowAttachSelf=true", "-Djava.io.tmpdir=" + folder,
                    "-Dcassandra.config=" + yaml.toUri(), "-Dcassandra.storagedir=" + folder,
                    "-Dcassandra.triggers_dir=" + folder, "-Dcassandra.ring_delay_ms=100",
                    "-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.superuser_setup_delay_ms=0",
                    "-Dlogback.configurationFile=logback-node.xml", "-Dnode.log=" + folder.resolve("node.log"),
                    NodeMain.class.getName()));
            process = new ProcessBuilder(command).directory(folder.toFile())
                    .redirectError(ProcessBuilder.Redirect.appendTo(folder.resolve("stderr.log").toFile())).start();
            answers = lines(process);
            commands = process.getOutputStream();
            String said = answer();
            if (!"ready".equals(said)) {
                throw new IllegalStateException("the node does not start: " + said + "\n" + log());
            }
            return this;
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /** Returns the end of the node's log. */
    String log() {
        try {
            StringBuilder all = new StringBuilder();
            for (String name : List.of("stderr.log", "node.log")) {
                if (Files.exists(folder.resolve(name))) {
                    List<String> lines = Files.readAllLines(folder.resolve(name));
                    lines.subList(Math.max(0, lines.size() - 60), lines.size()).forEach(line -> all.append(line).append('\n'));
                }
            }
            return all.toString();
        } catch (IOException failed) {
            return failed.toString();
        }
    }

    private static BlockingQueue<Optional<String>> lines(Process process) {
        BlockingQueue<Optional<String>> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
                for (String line; (line = in.readLine()) != null;) {
                    lines.add(Optional.of(line));
                }
            } catch (IOException killed) {
                // The process has ended.
            }
            lines.add(Optional.empty());
        });
        reader.setDaemon(true);
        reader.start();
        return lines;
    }

    /** Returns the next line from the process; null at its end. */
    private String answer() {
        try {
            Optional<String> line = answers.poll(MAX_ANSWER, TimeUnit.MINUTES);
            if (line == null) {
                throw new IllegalStateException("no answer in " + MAX_ANSWER + " minutes\n" + log());
            }
            return line.orElse(null);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** Runs a command of {@link NodeMain}. */
    String run(String command) {
        try {
            commands.write((command + "\n").getBytes());
            commands.flush();
            String answer = answer();
            if (answer == null || !answer.startsWith("done")) {
                throw new IllegalStateException(command + ": " + answer + "\n" + log());
            }
            return answer.substring("done".length()).strip();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /** Returns a client of all nodes of a cluster, with requests at {@code QUORUM}. */
    static Cluster clientOf(List<Node> nodes) {
        return Cluster.builder()
                .addContactPointsWithPorts(nodes.stream().map(Node::client).toArray(InetSocketAddress[]::new))
                .withPort(nodes.get(0).nativePort)
                .withQueryOptions(new QueryOptions().setConsistencyLevel(ConsistencyLevel.QUORUM))
                .withSocketOptions(patient()).withoutJMXReporting().build();
    }

    private static SocketOptions patient() {
        return new SocketOptions().setConnectTimeoutMillis(120_000).setReadTimeoutMillis(120_000);
    }

    /** Returns a client's session with only this node, which ends with the node. */
    Session session() {
        if (session == null) {
            cluster = Cluster.builder().addContactPoint(address).withPort(nativePort).withoutJMXReporting()
                    .withLoadBalancingPolicy(new WhiteListPolicy(new RoundRobinPolicy(), List.of(client())))
                    .withSocketOptions(patient()).build();
            session = cluster.connect();
        }
        return session;
    }

    private void endSession() {
        if (cluster != null) {
            cluster.close();
            cluster = null;
            session = null;
        }
    }

    /** Kills it by {@code kill -9} and starts it. */
    Node killAndStart() {
        kill();
        return start();
    }

    /** Kills it by {@code kill -9}. */
    void kill() {
        process.destroyForcibly();
        try {
            if (!process.waitFor(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the node survives kill -9");
            }
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        endSession();
    }

    /** Stops it as an operator would. */
    void stop() {
        run("stop");
        endSession();
    }

    @Override
    public void close() {
        if (process != null) {
            kill();
        }
    }
}

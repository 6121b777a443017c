import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.index.mapper.MapperExtrasPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** Runs a node of OpenSearch in a folder, on a free port, until standard input ends. */
class OpenSearch extends Node {
    OpenSearch(Settings settings) {
        super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "test"),
              List.of(Netty4Plugin.class, MapperExtrasPlugin.class), false);
    }

    public static void main(String[] args) throws Exception {
        Settings settings = Settings.builder().put("path.home", args[0]).put("http.port", 0).put("transport.port", 0)
            .put("discovery.type", "single-node").put("cluster.routing.allocation.disk.threshold_enabled", false).build();
        try (Node node = new OpenSearch(settings).start()) {
            System.out.println(node.injector().getInstance(org.opensearch.http.HttpServerTransport.class).boundAddress().publishAddress());
            System.in.read();
        }
    }
}

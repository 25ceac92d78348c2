package berth;

import com.google.common.collect.ImmutableMap;
import com.google.common.util.concurrent.MoreExecutors;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import javassist.ClassPool;
import javax.ws.rs.core.Application;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.glassfish.jersey.server.ResourceConfig;
import org.glassfish.jersey.servlet.ServletContainer;
import org.opendaylight.controller.md.sal.binding.api.DataBroker;
import org.opendaylight.controller.md.sal.binding.impl.BindingDOMDataBrokerAdapter;
import org.opendaylight.controller.md.sal.binding.impl.BindingToNormalizedNodeCodec;
import org.opendaylight.controller.md.sal.common.api.data.LogicalDatastoreType;
import org.opendaylight.controller.md.sal.dom.broker.impl.SerializedDOMDataBroker;
import org.opendaylight.controller.md.sal.dom.store.impl.InMemoryDOMDataStore;
import org.opendaylight.mdsal.binding.dom.codec.gen.impl.StreamWriterGenerator;
import org.opendaylight.mdsal.binding.dom.codec.impl.BindingNormalizedNodeCodecRegistry;
import org.opendaylight.mdsal.binding.generator.impl.ModuleInfoBackedContext;
import org.opendaylight.mdsal.binding.generator.util.JavassistUtils;
import org.opendaylight.mdsal.binding.spec.reflect.BindingReflections;
import org.opendaylight.neutron.northbound.api.NeutronNorthboundRSApplication;
import org.opendaylight.yangtools.yang.model.api.SchemaContext;

/**
 * Serves OpenDaylight's Neutron northbound API from one process, with the datastore in memory: without Karaf, AAA and RESTCONF. It does
 * not check credentials. It prints its address when it answers requests, and ends on SIGTERM or at the end of its standard input.
 */
public final class Northbound {
    private static final String CONTEXT = "/controller/nb/v2/neutron";
    private static final String SPI = "org.opendaylight.neutron.spi.I";
    private static final String TRANSCRIBER = "org.opendaylight.neutron.transcriber.";

    private final Map<Class<?>, Object> instances = new HashMap<>();

    private Northbound() {
    }

    public static void main(final String[] args) throws Exception {
        if (args.length != 2 || !"--listen".equals(args[0]) || args[1].indexOf(':') < 0) {
            System.err.println("usage: opendaylight --listen HOST:PORT (port 0: a free port)");
            System.exit(2);
        }
        endWithStandardInput();
        final int colon = args[1].lastIndexOf(':');
        try {
            final Northbound northbound = new Northbound();
            northbound.instances.put(DataBroker.class, createDataBroker());
            final Application application = (Application) northbound.instance(NeutronNorthboundRSApplication.class);
            serve(application, args[1].substring(0, colon), Integer.parseInt(args[1].substring(colon + 1)));
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1); // other threads would keep the process alive
        }
    }

    private static void endWithStandardInput() {
        final Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException e) {
                System.err.println("read standard input: " + e);
            }
            System.exit(0);
        }, "standard input");
        reader.setDaemon(true);
        reader.start();
    }

    /** Returns a broker for the configuration and the operational datastore, with all YANG models on the class path. */
    private static DataBroker createDataBroker() {
        final ModuleInfoBackedContext modules = ModuleInfoBackedContext.create();
        modules.addModuleInfos(BindingReflections.loadModuleInfos());
        final SchemaContext schema = modules.tryToCreateSchemaContext().get();

        final BindingToNormalizedNodeCodec codec = new BindingToNormalizedNodeCodec(modules,
            new BindingNormalizedNodeCodecRegistry(StreamWriterGenerator.create(JavassistUtils.forClassPool(ClassPool.getDefault()))));
        codec.onGlobalContextUpdated(schema);

        return new BindingDOMDataBrokerAdapter(new SerializedDOMDataBroker(
            ImmutableMap.of(LogicalDatastoreType.CONFIGURATION, createStore("CONFIGURATION", schema),
                LogicalDatastoreType.OPERATIONAL, createStore("OPERATIONAL", schema)),
            MoreExecutors.listeningDecorator(Executors.newSingleThreadExecutor())), codec);
    }

    private static InMemoryDOMDataStore createStore(final String name, final SchemaContext schema) {
        final InMemoryDOMDataStore store = new InMemoryDOMDataStore(name, MoreExecutors.newDirectExecutorService());
        store.onGlobalContextUpdated(schema);
        return store;
    }

    /**
     * Returns the instance of a class, and creates it and the instances that its constructor needs if there is none. A class of the
     * transcriber implements each interface of the SPI.
     */
    private Object instance(final Class<?> type) throws ReflectiveOperationException {
        final Object known = instances.get(type);
        if (known != null) {
            return known;
        }
        final String name = type.getName();
        Object created;
        if (type.isInterface() && name.startsWith(SPI)) {
            created = instance(Class.forName(TRANSCRIBER + name.substring(SPI.length()).replaceFirst("CRUD$", "Interface")));
        } else {
            final Constructor<?> constructor = type.getConstructors()[0];
            final Class<?>[] needs = constructor.getParameterTypes();
            final Object[] arguments = new Object[needs.length];
            for (int i = 0; i < needs.length; i++) {
                arguments[i] = instance(needs[i]);
            }
            created = constructor.newInstance(arguments);
        }
        instances.put(type, created);
        return created;
    }

    private static void serve(final Application application, final String host, final int port) throws Exception {
        final Server server = new Server();
        final ServerConnector connector = new ServerConnector(server);
        connector.setHost(host);
        connector.setPort(port);
        server.addConnector(connector);
        final ServletContextHandler context = new ServletContextHandler();
        context.setContextPath(CONTEXT);
        final ServletHolder holder = new ServletHolder(new ServletContainer(ResourceConfig.forApplication(application)));
        holder.setInitOrder(1);
        context.addServlet(holder, "/*");
        server.setHandler(context);
        server.start();

        final String address = host + ":" + connector.getLocalPort();
        final HttpURLConnection request = (HttpURLConnection) new URL("http://" + address + CONTEXT + "/networks").openConnection();
        if (request.getResponseCode() != 200) {
            throw new IOException("GET /networks answers " + request.getResponseCode());
        }
        System.out.println("listening " + address);
        System.out.flush();
    }
}

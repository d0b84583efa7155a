import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/** Answers one line for each line of input: what Kafka's own assignors do.
 *
 * range|a=3 b=2|m1::a,b m2:i2:a    who gets what, as  m1=a-0,a-1,b-0 m2=a-2
 * sticky|7|a-0 a-1                 user data of a member that got these in generation 7, in hex
 */
public class Assignors {
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            String[] parts = in.nextLine().split("\\|", -1);
            System.out.println(parts[0].equals("sticky") ? userData(parts) : assign(parts));
        }
    }

    private static String userData(String[] parts) {
        List<TopicPartition> held = new ArrayList<>();
        for (String each : words(parts[2])) {
            int dash = each.lastIndexOf('-');
            int number = Integer.parseInt(each.substring(dash + 1));
            held.add(new TopicPartition(each.substring(0, dash), number));
        }
        StickyAssignor assignor = new StickyAssignor();
        int generation = Integer.parseInt(parts[1]);
        assignor.onAssignment(
            new Assignment(held), new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        ByteBuffer data = assignor.subscriptionUserData(Set.of("a"));
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private static String assign(String[] parts) {
        Map<String, Integer> counts = new HashMap<>();
        for (String each : words(parts[1])) {
            counts.put(each.split("=")[0], Integer.parseInt(each.split("=")[1]));
        }
        Map<String, Subscription> members = new HashMap<>();
        for (String each : words(parts[2])) {
            String[] member = each.split(":", -1);
            List<String> topics = member[2].isEmpty() ? List.of() : List.of(member[2].split(","));
            Subscription subscription = new Subscription(topics);
            Optional<String> instance =
                member[1].isEmpty() ? Optional.empty() : Optional.of(member[1]);
            subscription.setGroupInstanceId(instance);
            members.put(member[0], subscription);
        }
        AbstractPartitionAssignor assignor =
            parts[0].equals("range") ? new RangeAssignor() : new RoundRobinAssignor();
        StringBuilder out = new StringBuilder();
        new TreeMap<>(assignor.assign(counts, members)).forEach((member, given) -> {
            List<String> names = new ArrayList<>();
            given.forEach(tp -> names.add(tp.toString()));
            names.sort(null);
            out.append(member).append('=').append(String.join(",", names)).append(' ');
        });
        return out.toString().trim();
    }

    private static List<String> words(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(" "));
    }
}

#!/usr/bin/env python3
"""Topics and their labels beside k-means, EVoC and BERTopic, at equal numbers of topics.

usage: topics.py OVERCOMPLETE TABLE.parquet [--topics 8,16,32] [--seeds 1,2,3] [--labels] [--json]
       topics.py OVERCOMPLETE TABLE.parquet --halves 6 [--topics 8,16,32]

TABLE has columns text, label (a class, such as a newsgroup) and embedding. Every method gets all rows
and their texts. The script prints means over the seeds. Larger is better, except for time:

  NMI         normalised mutual information of topic and label over all rows that have text. Rows
              without a topic are one topic.
  seeds       NMI of the topics of two seeds over all rows, mean over the pairs of seeds
  AUC         AUC of the best topic of a label, mean over labels. The score of a row for a topic is the sum
              of squared cosines with the topic's themes, if they are among the row's sixteen nearest
              (overcomplete), minus the distance to its centre (k-means), or membership (BERTopic)
  coverage    share of rows with a topic, among the rows that have text
  time        seconds of wall-clock time for topics and labels. It includes starting the program
              (overcomplete), but not loading libraries (BERTopic's first run compiles)

A second training gets four of five rows (by a permutation of seed 0) and describes topics by labels. The
other rows are then encoded (overcomplete) or assigned (k-means, BERTopic).

  NPMI        normalised pointwise mutual information of two words of a label, by the posts of the
              table that contain them (−1 if they never meet), mean over pairs and topics
  diversity   share of distinct words among the words of all labels
  F1          F1 of "the row contains a word of the label" as a prediction of "the row has the topic", over
              the held-out rows, mean over topics

A phrase counts as a word, except in diversity. Labels have three words or fewer. Those of k-means and
BERTopic are the words with the largest c-TF-IDF, without scikit-learn's English stop words, as BERTopic's
documentation recommends. --labels prints the labels of the first seed, --json these and the largest
difference between seeds (spread), too.

--halves prints the NMI of random halves of the rows: mean and standard deviation, for each method, and its
difference from overcomplete in the same halves. EVoC finds the number of topics that is nearest to the one
asked for; it is only part of this comparison.

Requires bertopic 0.17.4 and evoc 0.3.2.
"""

import argparse
import collections
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score

warnings.filterwarnings("ignore")
LABEL_WORDS = 3

Topics = collections.namedtuple("Topics", "of scores labels")  # topic of each row, or −1; scores, V×T; words of each topic


def words_of(text):
    return re.findall(r"[^\W\d_](?:['’]?[^\W_])*", text.lower())


class Overcomplete:
    name = "overcomplete"
    table = None  # of the last training

    def fit(self, table, count, seed):
        if self.table is not table or self.seed != seed:  # else only the number of topics is new
            self.folder, self.table, self.seed = tempfile.TemporaryDirectory(), table, seed
        self.count = str(count)
        of, broad, themes, labels = self.run(table, "train", "--seed", str(seed))
        self.topics = sorted(set(broad.values()))
        scores = [sum(themes[:, k] for k, topic in broad.items() if topic == t) for t in self.topics]
        return Topics(self.places(of), np.transpose(scores), [labels[t] for t in self.topics])

    def predict(self, table):
        return Topics(self.places(self.run(table, "encode", os.path.join(self.folder.name, "train"))[0]), None, None)

    def places(self, topics):
        return np.array([self.topics.index(t) if t in self.topics else -1 for t in topics])

    def run(self, table, command, *arguments):
        """Returns the topic of each row, the topic of each theme that has rows, squared cosines with themes, and labels."""
        path, out = os.path.join(self.folder.name, "table.parquet"), os.path.join(self.folder.name, command)
        if not os.path.exists(out):
            pq.write_table(table, path)
            inputs = [path, *arguments] if command == "train" else [*arguments, path]
            subprocess.run([program, command, *inputs, "-o", out], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        call = [program, "topics", out, "--topics", self.count, "--json"]
        found = json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout)
        model = os.path.join(self.folder.name, "train")  # its dictionary also encodes the held-out rows
        themes = np.load(os.path.join(model, "themes.npy"))
        rows = sparse.load_npz(os.path.join(out, "codes.npz")) @ np.load(os.path.join(model, "dictionary.npy"))
        cosines = rows @ themes.T / np.maximum(np.linalg.norm(rows, axis=1), 1e-30)[:, None]
        least = np.sort(cosines, axis=1)[:, -min(16, len(themes))]
        cosines[(cosines < least[:, None]) | (cosines < 0)] = 0
        parents = {t["id"]: t["parent"] for t in found["topics"] + found["subtopics"]}
        broad = {}
        for theme in filter(parents.__contains__, range(len(themes))):
            broad[theme] = theme
            while parents[broad[theme]] is not None:
                broad[theme] = parents[broad[theme]]
        return found["rows"], broad, cosines**2, {t["id"]: [w.lower() for w in t["words"]] for t in found["topics"]}


class ClassWords:
    """Labels topics by BERTopic's c-TF-IDF over the texts of each topic."""

    def label(self, texts, of, count):
        from bertopic.vectorizers import ClassTfidfTransformer

        documents = [" ".join(t for t, k in zip(texts, of) if k == topic) for topic in range(count)]
        vectorizer = CountVectorizer(stop_words="english")
        weights = ClassTfidfTransformer().fit_transform(vectorizer.fit_transform(documents)).toarray()
        names = vectorizer.get_feature_names_out()
        return [list(names[np.argsort(-row, kind="stable")[:LABEL_WORDS]]) for row in weights]


class KMeansTopics(ClassWords):
    name = "k-means"

    def fit(self, table, count, seed):
        self.means = KMeans(count, n_init=10, random_state=seed).fit(vectors(table))
        return self.predict(table, table["text"].to_pylist())

    def predict(self, table, texts=None):
        x = vectors(table)
        of = self.means.predict(x)
        count = len(self.means.cluster_centers_)
        return Topics(of, -self.means.transform(x), texts and self.label(texts, of, count))


class BERTopicTopics:
    name = "BERTopic"

    def fit(self, table, count, seed):
        from bertopic import BERTopic
        from umap import UMAP

        reduction = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", low_memory=False, random_state=seed)
        counter = CountVectorizer(stop_words="english")
        self.model = BERTopic(umap_model=reduction, vectorizer_model=counter, nr_topics=count + 1)  # one for outliers
        of, _ = self.model.fit_transform(table["text"].to_pylist(), vectors(table))
        self.count = max(of) + 1
        labels = [[w for w, _ in self.model.get_topic(k)[:LABEL_WORDS]] for k in range(self.count)]
        return self.topics(of, labels)

    def predict(self, table):
        of, _ = self.model.transform(table["text"].to_pylist(), vectors(table))
        return self.topics(of, None)

    def topics(self, of, labels):
        of = np.array(of)
        return Topics(of, one_hot(of, self.count), labels)


class EVoCTopics:
    name = "EVoC"

    def fit(self, table, count, seed):
        from evoc import EVoC

        of = EVoC(approx_n_clusters=count, random_state=seed).fit_predict(vectors(table))
        return Topics(of, one_hot(of, max(of) + 1), None)


def one_hot(of, count):
    return (of[:, None] == np.arange(count)).astype(float)


def vectors(table):
    return np.stack(table["embedding"].to_numpy()).astype(np.float32)


def best_auc(scores, classes):
    best = [max(roc_auc_score(classes == c, s) for s in scores.T) for c in np.unique(classes)]
    return np.mean(best)


def npmi(texts_of, total):
    """Returns the mean NPMI over pairs of words, given the texts that contain each word. Returns None without a pair."""
    values = []
    for a, b in itertools.combinations(texts_of, 2):
        both, alone = len(a & b) / total, len(a) * len(b) / total**2
        values.append(-1 if both == 0 else 1 if both == 1 else np.log(both / alone) / -np.log(both))
    return np.mean(values) if values else None


def label_scores(labels, of, held_out, texts):
    """Returns NPMI, diversity and F1 of labels, given the topics of the held-out rows."""
    spaced = [f" {' '.join(words_of(text))} " for text in texts]
    terms = {term for label in labels for term in label}
    texts_of = {term: {i for i, text in enumerate(spaced) if f" {term} " in text} for term in terms}
    coherent = [npmi([texts_of[term] for term in label], len(texts)) for label in labels]
    flat = [word for label in labels for term in label for word in term.split()]
    f1 = []
    for topic, label in enumerate(labels):
        rows = {i for i, k in zip(held_out, of) if k == topic}
        found = set().union(*(texts_of[term] for term in label)) & set(held_out)
        if rows and label:
            f1.append(2 * len(found & rows) / (len(found) + len(rows)))
    return {
        "NPMI": np.mean([c for c in coherent if c is not None]),
        "diversity": len(set(flat)) / len(flat),
        "F1": np.mean(f1),
    }


def agreement(table, of):
    """Returns the NMI of topics and labels over the rows that have text, and these rows."""
    nonempty = np.array([bool(t and t.strip()) for t in table["text"].to_pylist()])
    return normalized_mutual_info_score(np.array(table["label"].to_pylist())[nonempty], of[nonempty]), nonempty


def compare_halves(table, counts, halves):
    """Prints the NMI of each method in random halves of the rows, and the paired differences from the first method."""
    found = collections.defaultdict(list)
    for half in range(halves):
        rows = table.take(np.sort(np.random.default_rng(half).permutation(len(table))[: len(table) // 2]))
        for count, method in itertools.product(counts, methods):
            topics = method.fit(rows, count, half + 1)
            found[count, method.name].append([agreement(rows, topics.of)[0], topics.scores.shape[1], (topics.of >= 0).mean()])
    for (count, name), values in found.items():
        ahead = np.array(found[count, methods[0].name])[:, 0] - np.array(values)[:, 0]
        nmi, topics, coverage = np.mean(values, axis=0)
        print(f"{count:3} {name:14}{topics:6.1f}{nmi:8.3f} ± {np.std(values, axis=0, ddof=1)[0]:.3f}{ahead.mean():+9.3f} ± {ahead.std(ddof=1):.3f}{coverage:7.2f}")


def measure(method, table, count):
    classes = np.array(table["label"].to_pylist())
    texts = [t or "" for t in table["text"].to_pylist()]
    shuffled = np.random.default_rng(0).permutation(len(texts))
    held_out, used = np.sort(shuffled[: len(texts) // 5]), np.sort(shuffled[len(texts) // 5 :])
    rows, all_topics, first = collections.defaultdict(list), [], None
    for seed in seeds:
        start = time.perf_counter()
        topics = method.fit(table, count, seed)
        rows["time"].append(time.perf_counter() - start)
        all_topics.append(topics.of)
        rows["topics"].append(topics.scores.shape[1])
        nmi, nonempty = agreement(table, topics.of)
        rows["NMI"].append(nmi)
        rows["AUC"].append(best_auc(topics.scores[nonempty], classes[nonempty]))
        rows["coverage"].append((topics.of[nonempty] >= 0).mean())
        first = first or topics.labels
        labels = method.fit(table.take(used), count, seed).labels
        for name, value in label_scores(labels, method.predict(table.take(held_out)).of, held_out, texts).items():
            rows[name].append(value)
    pairs = [normalized_mutual_info_score(a, b) for a, b in itertools.combinations(all_topics, 2)]
    rows["seeds"] = pairs or [float("nan")]
    means = {name: float(np.mean(values)) for name, values in rows.items()}
    return means, {name: float(np.ptp(values)) for name, values in rows.items()}, first


def numbers(text):
    return [int(n) for n in text.split(",")]


parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
parser.add_argument("program")
parser.add_argument("table")
parser.add_argument("--topics", type=numbers, default=[8, 16, 32])
parser.add_argument("--seeds", type=numbers, default=[1, 2, 3])
parser.add_argument("--methods", default="overcomplete,k-means,EVoC,BERTopic")
parser.add_argument("--halves", type=int, default=0)
parser.add_argument("--labels", action="store_true")
parser.add_argument("--json", action="store_true")
options = parser.parse_args()
program, seeds = options.program, options.seeds
methods = [m for m in (Overcomplete(), KMeansTopics(), EVoCTopics(), BERTopicTopics()) if m.name in options.methods.split(",")]
table = pq.read_table(options.table)
if options.halves:
    compare_halves(table, options.topics, options.halves)
    sys.exit()
columns = ["topics", "NMI", "seeds", "AUC", "coverage", "NPMI", "diversity", "F1", "time"]
results = []
if not options.json:
    print(f"{'method':14}" + "".join(f"{c:>10}" for c in columns))
for count in options.topics:
    for method in methods:
        if not hasattr(method, "predict"):
            continue
        scores, spread, labels = measure(method, table, count)
        labels = [", ".join(label) for label in labels]
        results.append({"method": method.name, "asked": count, **scores, "spread": spread, "labels": labels})
        if not options.json:
            print(f"{method.name:14}" + "".join(f"{scores[c]:10.3g}" for c in columns), flush=True)
            if options.labels:
                print("    " + "; ".join(results[-1]["labels"]), flush=True)
if options.json:
    json.dump(results, sys.stdout, indent=2)

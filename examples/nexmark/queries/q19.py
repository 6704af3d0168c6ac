"""Query 19: the ten highest bids of each auction, with their ranks. A filter and a process function on columns.

With bids that are among the ten highest so far, every rank that changes comes out, and takes the place of what the same
rank of the auction was before. Of equal prices, the earliest bid ranks first. The bids that a subtask has in a
micro-batch are ranked together, so the results are the ranks after all of them. Before the bids are sent to the
subtasks of their auctions, each batch loses those that ten bids of the same batch exceed: they never get a rank.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common import Types
from eventide.datastream import DataStream
from eventide.datastream.functions import RuntimeContext, VectorizedKeyedProcessFunction
from eventide.datastream.state import ValueStateDescriptor
from examples.nexmark.generator import BID
from examples.nexmark.source import Streams

RANKED = Types.ROW_NAMED([*BID.field_names, "rank_number"], [*BID.field_types, Types.LONG()])
BY_RANK = [("key", "ascending"), ("price", "descending"), ("dateTime", "ascending"), ("extra", "ascending")]
"""The order of the bids of each auction; the last part only makes it complete."""


def may_be_ranked(bids: pa.RecordBatch) -> pa.Array:
    """Say of each bid whether fewer than ten bids of its auction in the batch are higher."""
    auctions, prices = (bids.column(name).to_numpy() for name in ("auction", "price"))
    order = np.lexsort((-prices, auctions))  # by auction, the highest price first
    auctions, prices = auctions[order], prices[order]
    is_first = np.diff(auctions, prepend=-1) != 0
    first = np.flatnonzero(is_first)
    tenth = np.minimum(first + 9, np.append(first[1:], len(order)) - 1)
    passes = np.empty(len(order), bool)
    passes[order] = prices >= prices[tenth][np.cumsum(is_first) - 1]
    return pa.array(passes)


class TopTen(VectorizedKeyedProcessFunction):
    """Keeps the ten highest bids of each auction, the highest first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.top = runtime_context.get_vectorized_state(ValueStateDescriptor("top", Types.LIST(BID)))

    def process_batch(self, batch: pa.RecordBatch, ctx: VectorizedKeyedProcessFunction.Context) -> None:
        before = self.top.get(ctx.distinct_keys)
        kept = pa.RecordBatch.from_struct_array(before.flatten())
        bids = pa.concat_batches([kept, batch])
        keys = np.concatenate([pc.list_parent_indices(before), ctx.key_numbers])
        order = pc.sort_indices(bids.append_column("key", pa.array(keys)), BY_RANK).to_numpy()
        first = np.flatnonzero(np.diff(keys[order], prepend=-1))  # where the bids of each auction begin
        rank = np.arange(len(order)) - first[keys[order]]
        order, rank = order[rank < 10], rank[rank < 10]
        top, keys = bids.take(pa.array(order)), keys[order]
        ends = np.cumsum(np.bincount(keys))
        self.top.put(ctx.distinct_keys, pa.ListArray.from_arrays(np.append(0, ends), top.to_struct_array()))

        highest = np.full(len(ends), 10)  # the rank of the highest new bid of each auction: those below change, too
        is_new = order >= len(kept)
        np.minimum.at(highest, keys[is_new], rank[is_new])
        changes = rank >= highest[keys]
        last = np.empty(len(ends), np.int64)
        last[ctx.key_numbers] = np.arange(len(batch))  # the last row of each auction, with which its ranks change
        ranked = top.append_column("rank_number", pa.array(rank + 1))
        ctx.collect(ranked.filter(pa.array(changes)), last[keys[changes]])


def top_ten_bids(streams: Streams) -> DataStream:
    return streams.bids.filter_batches(may_be_ranked).key_by("auction").process(TopTen(), RANKED)

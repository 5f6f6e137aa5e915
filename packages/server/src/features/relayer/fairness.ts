import type { PickedRow, QueueKey, TurnKey, Visited } from './queue-store.ts'

/** The relays of a turn, and the queues that it found empty. */
export interface Turn {
  /** In the order in which they are taken. */
  readonly dealt: readonly Dealt[]
  /** Nothing in them can be sent now. */
  readonly empty: Visited
}

/** A relay that has a place in a turn. */
export interface Dealt {
  readonly relayId: bigint
  readonly queue: QueueKey
}

/**
 * Assigns the places of a turn one by one: to each organization its first relay, then to each its second, until all places are
 * assigned. Within an organization its signers alternate. So nobody gets less because of others' backlog, and no place stays
 * free.
 */
export function dealTurn(slot: Pick<QueueKey, 'network' | 'alone'>, rows: readonly PickedRow[], most: number): Turn {
  const turns = new Map<bigint, Dealt[]>()
  const emptyQueues: QueueKey[] = []
  const turnKeys = new Map<bigint, TurnKey>()
  for (const row of rows.toSorted(inOrder)) {
    const { organisationId, purpose, turn, signer, relayId } = row
    const key = { ...slot, organisationId, purpose }
    turnKeys.set(turn, key)
    const offered = turns.get(turn) ?? []
    turns.set(turn, offered)
    if (signer === null) continue
    if (relayId === null) emptyQueues.push({ ...key, signer })
    else offered.push({ relayId, queue: { ...key, signer } })
  }
  return {
    dealt: deal(
      [...turns].toSorted(([left], [right]) => compare(left, right)).map(([, offered]) => offered),
      most,
    ),
    empty: {
      queues: emptyQueues,
      turns: [...turns].flatMap(([turn, offered]) => (offered.length > 0 ? [] : (turnKeys.get(turn) ?? []))),
    },
  }
}

/**
 * Returns the queues and organizations that a turn visited: those with nothing to send, and those of the relays that it served.
 */
export function visitedBy({ empty }: Turn, served: readonly Dealt[]): Visited {
  const queues = new Map(served.map(({ queue }) => [`${queue.organisationId} ${queue.purpose} ${queue.signer}`, queue]))
  const turns = new Map(
    served.map(({ queue: { signer: _, ...turn } }) => [`${turn.organisationId} ${turn.purpose}`, turn]),
  )
  return { queues: [...empty.queues, ...queues.values()], turns: [...empty.turns, ...turns.values()] }
}

/** Orders the first relay of each queue first, then the second of each. */
function inOrder(left: PickedRow, right: PickedRow): number {
  return compare(left.place ?? 0n, right.place ?? 0n) || compare(left.signerTurn ?? 0n, right.signerTurn ?? 0n)
}

function compare(left: bigint, right: bigint): number {
  return left < right ? -1 : Number(left > right)
}

function deal(hands: readonly (readonly Dealt[])[], most: number): Dealt[] {
  const longest = Math.max(0, ...hands.map((hand) => hand.length))
  const dealt: Dealt[] = []
  for (let round = 0; round < longest && dealt.length < most; round += 1)
    for (const hand of hands) {
      const next = hand[round]
      if (next !== undefined && dealt.length < most) dealt.push(next)
    }
  return dealt
}

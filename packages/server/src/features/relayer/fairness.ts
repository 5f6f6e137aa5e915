import type { PickedRow, QueueKey, TurnKey } from './queue-store.ts'

/** What a turn carries, and what becomes of the queues that it visited. */
export interface Turn {
  /** In the order in which they are taken. */
  readonly relayIds: readonly bigint[]
  /** Served: they go behind all others. */
  readonly servedQueues: readonly QueueKey[]
  readonly servedTurns: readonly TurnKey[]
  /** Nothing of them can be sent now. */
  readonly emptyQueues: readonly QueueKey[]
  readonly emptyTurns: readonly TurnKey[]
}

interface Offered {
  readonly relayId: bigint
  readonly turn: bigint
  readonly queue: QueueKey
}

/**
 * Deals the places of a turn out one by one: to each organisation its first relay, then to each its second, until all are dealt. Inside an
 * organisation it is the signers who are served in turn. So nobody gets less for what somebody else has waiting, and nothing stays free.
 */
export function dealTurn(slot: Pick<QueueKey, 'network' | 'alone'>, rows: readonly PickedRow[], most: number): Turn {
  const turns = new Map<bigint, Offered[]>()
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
    else offered.push({ relayId, turn, queue: { ...key, signer } })
  }
  const dealt = deal(
    [...turns].toSorted(([left], [right]) => compare(left, right)).map(([, offered]) => offered),
    most,
  )
  return {
    relayIds: dealt.map(({ relayId }) => relayId),
    servedQueues: distinct(dealt.map(({ queue }) => queue)),
    servedTurns: keysOf(turnKeys, new Set(dealt.map(({ turn }) => turn))),
    emptyQueues,
    emptyTurns: keysOf(
      turnKeys,
      new Set([...turns].flatMap(([turn, offered]) => (offered.length === 0 ? [turn] : []))),
    ),
  }
}

/** Of a turn's queues first the first relay of each, then the second of each. */
function inOrder(left: PickedRow, right: PickedRow): number {
  return compare(left.place ?? 0n, right.place ?? 0n) || compare(left.signerTurn ?? 0n, right.signerTurn ?? 0n)
}

function compare(left: bigint, right: bigint): number {
  return left < right ? -1 : Number(left > right)
}

function deal(hands: readonly (readonly Offered[])[], most: number): Offered[] {
  const longest = Math.max(0, ...hands.map((hand) => hand.length))
  const dealt: Offered[] = []
  for (let round = 0; round < longest && dealt.length < most; round += 1)
    for (const hand of hands) {
      const next = hand[round]
      if (next !== undefined && dealt.length < most) dealt.push(next)
    }
  return dealt
}

function distinct(queues: readonly QueueKey[]): QueueKey[] {
  const named = new Map(queues.map((queue) => [`${queue.organisationId} ${queue.purpose} ${queue.signer}`, queue]))
  return [...named.values()]
}

function keysOf(turnKeys: ReadonlyMap<bigint, TurnKey>, wanted: ReadonlySet<bigint>): TurnKey[] {
  return [...wanted].flatMap((turn) => turnKeys.get(turn) ?? [])
}

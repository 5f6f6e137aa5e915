import type { Address, Network } from '@purser/protocol'
import type { SignerNeed } from '../../chain/port.ts'
import type { Tx } from '../../platform/db/db.ts'
import { roundRobin } from '../../platform/round-robin.ts'
import { callOf } from './forms/index.ts'
import { conclude, purposeOf, type RelayerParts } from './parts.ts'
import type { Admission, FailedRelay, Relay } from './port.ts'
import { relayPurpose } from './port.ts'
import {
  type Emptied,
  endVisit,
  type PickedRow,
  pickDue,
  type QueueKey,
  setSingle,
  type TurnKey,
  type Visited,
} from './queue-store.ts'
import { findBacklog, lockWaiting, markIncluded, postpone } from './store.ts'

/** Most relays in one transaction: ten million gas, below the cap of EIP-7825 (2^24) and every network's block. */
const batchMax = 100
const turnsMax = 25
const rowsOfSignerMax = 8

/**
 * `collecting`: only a few relays wait and an earlier batch is not in a block yet, so the batch waits for more; try
 * again shortly.
 */
export type BatchOutcome = 'sent' | 'nothing' | 'collecting' | 'full'

/**
 * Runs one turn of relays that share a transaction: selects them, reads each signer's present code, and links one transaction
 * with its nonce to all of them in one commit. A crash leaves both or neither.
 */
export async function sendBatch(parts: RelayerParts, network: Network): Promise<BatchOutcome> {
  const { ctx } = parts
  const { batch: open } = await ctx.lanes.openCounts(ctx.db, network, ctx.settlerAddress)
  const slots = ctx.lanes.slots.batch
  if (open >= slots) return 'full'
  if (open > 0 && (await isBatching(parts, network))) return 'collecting'
  const turn = await selectBatch(parts, network, { slot: 'batch', most: batchMax, open: open / slots })
  if (turn.selected.length === 0) {
    await endTurn(parts, turn, [])
    return 'nothing'
  }
  try {
    await planBatch(parts, network, turn)
    return 'sent'
  } catch (error) {
    if (await postponeFailing(parts, turn)) return sendBatch(parts, network)
    throw error
  }
}

async function isBatching({ ctx, timings }: RelayerParts, network: Network): Promise<boolean> {
  const { count, waitedMs } = await findBacklog(ctx.db, network.name, batchMax)
  return count > 0 && count < batchMax && waitedMs < timings.batchMs
}

interface Wanted {
  readonly slot: 'batch' | 'single'
  readonly most: number
  /** Share of the slots in use: a purpose is sent only up to its own share. */
  readonly open: number
  /** Signers of whom nothing is taken. */
  readonly busy?: readonly string[]
}

/** Selects the organisations whose turn it is on a network, and their relays. */
export async function selectBatch(
  parts: RelayerParts,
  network: Network,
  { slot, most, open, busy }: Wanted,
): Promise<BatchSelection> {
  const purposes = [...parts.purposes.values()].filter(({ share }) => open < share).map(({ purpose }) => purpose)
  const alone = slot === 'single'
  const bounds = { network: network.name, alone, purposes, turnsMax, rowsOfSignerMax, most, busy }
  const rows = await pickDue(parts.ctx.db, { ...bounds, timeLeftMs: parts.timings.timeLeftMs })
  return selectFairly({ network: network.name, alone }, rows, most)
}

/** Updates the queues after a turn that served these relays. */
export async function endTurn(
  { ctx, timings }: RelayerParts,
  turn: BatchSelection,
  served: readonly SelectedRelay[],
): Promise<void> {
  await ctx.db.tx((tx) => endVisit(tx, visitedBy(turn, served), timings.timeLeftMs), { readsByKeys: true })
}

async function planBatch(parts: RelayerParts, network: Network, turn: BatchSelection): Promise<void> {
  const { ctx } = parts
  await ctx.lanes.prepare(network, ctx.settlerAddress)
  // Read in the turn that sends: after its signature was checked, an account may have got code (EIP-7702) that uses up the gas
  // grant, or may have moved its money away, which makes its calls fail at the settler's expense.
  const unfit = await ctx.chains.on(network).signersToSendSingly(needsOf(turn.selected))
  const refused = await ctx.db.tx(
    async (tx) => {
      const locked = await lockWaiting(
        tx,
        turn.selected.map(({ relayId }) => relayId),
      )
      const [own, others] = partition(locked, ({ signer }) => unfit.has(signer))
      if (own.length > 0)
        await setSingle(
          tx,
          own.map(({ id }) => id),
        )
      const { sent, refused } = await admit(parts, tx, others)
      if (sent.length > 0) await planTransaction(parts, tx, network, { slot: 'batch', relays: sent })
      await endVisit(tx, visitedBy(turn, turn.selected), parts.timings.timeLeftMs)
      return refused
    },
    { readsByKeys: true },
  )
  await conclude(parts, refused)
}

/**
 * Postpones, after a turn that could not be planned, the relays of those organisations and purposes whose feature fails to decide
 * about them, so that they block no others. Returns whether there were any.
 */
async function postponeFailing(parts: RelayerParts, turn: BatchSelection): Promise<boolean> {
  const { ctx, timings } = parts
  const groups = Map.groupBy(turn.selected, ({ queue: { organisationId, purpose } }) => `${organisationId} ${purpose}`)
  let hasFailing = false
  for (const [name, selected] of groups) {
    const relayIds = selected.map(({ relayId }) => relayId)
    const admitting = ctx.db.tx(async (tx) => admit(parts, tx, await lockWaiting(tx, relayIds)), { readsByKeys: true })
    await admitting.catch(async (error: unknown) => {
      ctx.log.error({ err: error, queues: name }, 'relays could not be admitted; retrying')
      await postpone(ctx.db, relayIds, timings.backoff)
      hasFailing = true
    })
  }
  return hasFailing
}

interface Planned {
  readonly slot: 'batch' | 'single'
  readonly relays: readonly Relay[]
}

/** Plans the transaction that carries relays, which the caller has locked. It calls them in the order of their ids. */
export async function planTransaction(
  { ctx: { lanes, settlerAddress } }: RelayerParts,
  tx: Tx,
  network: Network,
  { slot, relays }: Planned,
): Promise<void> {
  const inOrder = relays.toSorted((left, right) => Number(left.id - right.id))
  const call = callOf(inOrder.map(({ payload }) => payload))
  const planned = { network, ...call, value: 0n, slot, purpose: relayPurpose }
  const transactionId = await lanes.plan(tx, settlerAddress, planned)
  await markIncluded(
    tx,
    relays.map(({ id }) => id),
    transactionId,
  )
  tx.afterCommit(() => lanes.notify(network))
}

/** Returns the relays that their features admit now. Refused relays are ended afterwards, in the lock order of ending. */
export async function admit(
  parts: RelayerParts,
  tx: Tx,
  relays: readonly Relay[],
): Promise<{ readonly sent: readonly Relay[]; readonly refused: readonly FailedRelay[] }> {
  const judged: (readonly [Relay, Admission])[] = []
  for (const [name, own] of Map.groupBy(relays, ({ purpose }) => purpose)) {
    const admissions = await purposeOf(parts, name).admit?.(tx, own)
    judged.push(...own.map((relay, index) => [relay, admissions?.[index] ?? 'send'] as const))
  }
  const waiting = judged.flatMap(([{ id }, admission]) => (admission === 'wait' ? [id] : []))
  await postpone(tx, waiting, parts.timings.backoff)
  return {
    sent: judged.flatMap(([relay, admission]) => (admission === 'send' ? [relay] : [])),
    refused: judged.flatMap(([relay, admission]) =>
      typeof admission === 'string' ? [] : [{ relay, fault: admission }],
    ),
  }
}

/** Returns how much of each token the relays of each signer move. */
function needsOf(selected: readonly SelectedRelay[]): readonly SignerNeed[] {
  const sums = new Map<string, SignerNeed>()
  for (const { queue, moves } of selected) {
    if (moves === null) continue
    const key = `${queue.signer} ${moves.token}`
    const raw = (sums.get(key)?.raw ?? 0n) + moves.raw
    sums.set(key, { signer: queue.signer as Address, token: moves.token as Address, raw })
  }
  return [...sums.values()]
}

function partition<T>(items: readonly T[], belongs: (item: T) => boolean): [T[], T[]] {
  const parts: [T[], T[]] = [[], []]
  for (const item of items) parts[belongs(item) ? 0 : 1].push(item)
  return parts
}

/** The relays that are selected for a turn, and the queues that were found empty. */
export interface BatchSelection {
  /** In the order in which they are taken. */
  readonly selected: readonly SelectedRelay[]
  /** Nothing in them can be sent now. */
  readonly empty: Emptied
}

/** A relay that is part of a turn. */
export interface SelectedRelay {
  readonly relayId: bigint
  readonly queue: QueueKey
  /** The share owner and the purpose. */
  readonly owner: string
  /** An EIP-3009 authorization's amount, in the token's smallest unit; null for other payloads, which are sent alone. */
  readonly moves: { readonly token: string; readonly raw: bigint } | null
}

/**
 * Fills a turn fairly: the first relay of each share owner and purpose, then each one's second, until the turn is full. An owner's organisations
 * alternate, and within an organisation its signers. So a backlog of one owner does not reduce the share of others, and no capacity is left unused.
 * Of relays that are sent singly it takes one of each signer: a payer of many organisations takes no slot of other payers.
 */
export function selectFairly(
  slot: Pick<QueueKey, 'network' | 'alone'>,
  rows: readonly PickedRow[],
  most: number,
): BatchSelection {
  const { turns, turnKeys, emptyQueues } = relaysByTurn(slot, rows)
  const ordered = [...turns].toSorted(([left], [right]) => compare(left, right)).map(([, offered]) => offered)
  const ofOwners = [...Map.groupBy(ordered, ([first]) => first?.owner).values()]
  const inTurn = roundRobin(ofOwners.map(roundRobin))
  return {
    selected: (slot.alone ? oneOfEach(inTurn, ({ queue }) => queue.signer) : inTurn).slice(0, most),
    empty: {
      queues: emptyQueues,
      turns: [...turns].flatMap(([turn, offered]) => (offered.length > 0 ? [] : (turnKeys.get(turn) ?? []))),
    },
  }
}

/**
 * Returns the queues and organisations that a turn visited: those with nothing to send, and those of the relays that it served.
 */
export function visitedBy({ empty }: BatchSelection, served: readonly SelectedRelay[]): Visited {
  const queues = new Map(served.map(({ queue }) => [`${queue.organisationId} ${queue.purpose} ${queue.signer}`, queue]))
  const turns = new Map(
    served.map(({ queue: { signer: _, ...turn } }) => [`${turn.organisationId} ${turn.purpose}`, turn]),
  )
  return {
    queues: [...empty.queues, ...queues.values()],
    turns: [...empty.turns, ...turns.values()],
    served: [...turns.values()],
  }
}

/** The relays of each turn, the first of each queue first, and the queues without one. */
function relaysByTurn(slot: Pick<QueueKey, 'network' | 'alone'>, rows: readonly PickedRow[]) {
  const turns = new Map<bigint, SelectedRelay[]>()
  const emptyQueues: QueueKey[] = []
  const turnKeys = new Map<bigint, TurnKey>()
  for (const row of rows.toSorted(inOrder)) {
    const { organisationId, shareOwner, purpose, turn, signer, relayId, token, value } = row
    const key = { ...slot, organisationId, purpose }
    turnKeys.set(turn, key)
    const owner = `${shareOwner} ${purpose}`
    const relays = turns.get(turn) ?? []
    turns.set(turn, relays)
    if (signer === null) continue
    const queue = { ...key, signer }
    if (relayId === null) emptyQueues.push(queue)
    else relays.push({ relayId, queue, owner, moves: token && value ? { token, raw: BigInt(value) } : null })
  }
  return { turns, turnKeys, emptyQueues }
}

/** Orders the first relay of each queue first, then the second of each. */
function inOrder(left: PickedRow, right: PickedRow): number {
  return compare(left.position ?? 0n, right.position ?? 0n) || compare(left.signerTurn ?? 0n, right.signerTurn ?? 0n)
}

function compare(left: bigint, right: bigint): number {
  return left < right ? -1 : Number(left > right)
}

/** Returns the first item of each name. */
export function oneOfEach<T>(items: readonly T[], nameOf: (item: T) => string): readonly T[] {
  return [...Map.groupBy(items, nameOf).values()].flatMap(([first]) => first ?? [])
}

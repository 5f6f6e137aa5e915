import type { Address, Hex } from '@purser/protocol'
import type { Chain } from '../../chain/port.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { networkOf } from './give-back.ts'
import type { NewPayment } from './store.ts'
import { type CheckedRow, listOpenOf } from './void-store.ts'

/** A payer's funds as the chain reports them. */
export interface Funds {
  readonly rawBalance: bigint
  /** Open payments whose money had already left the payer when the balance was read. */
  readonly spentIds: readonly string[]
}

const openMax = 500
/** Most payers whose funds a process caches. */
const payersMax = 10_000

/** Payers' funds in the newest block, by network, token and payer. */
const remembered = new WeakMap<Chain, Map<string, Promise<Funds>>>()
const blocks = new WeakMap<Chain, bigint>()

/**
 * Returns what a payer can pay with. Recording reads it again if it seems too low: a payment that is in a block and not yet
 * recorded as settled has already left the balance and must not be counted twice. Balance and nonces are read in one call, of one
 * block, and once per block, so that endless verifications cost a node no more than that.
 */
export async function readFunds({ chains, db }: Pick<Ctx, 'chains' | 'db'>, payment: NewPayment): Promise<Funds> {
  const { payer, network, asset } = payment
  if (payer === null) throw new Error('the payment has no payer')
  const chain = chains.on(networkOf(network))
  const known = rememberedAt(chain, (await chain.head()).number)
  const name = `${asset} ${payer}`
  const reading = known.get(name) ?? readAnew({ chain, db }, { payer, network, asset })
  known.set(name, reading)
  reading.catch(() => known.delete(name))
  return reading
}

/** Returns the cache of this block, and drops the cache of any other. */
function rememberedAt(chain: Chain, block: bigint): Map<string, Promise<Funds>> {
  const known = remembered.get(chain)
  if (known !== undefined && blocks.get(chain) === block && known.size < payersMax) return known
  const fresh = new Map<string, Promise<Funds>>()
  remembered.set(chain, fresh)
  blocks.set(chain, block)
  return fresh
}

interface Payer {
  readonly payer: string
  readonly network: string
  readonly asset: string
}

async function readAnew({ chain, db }: Pick<Ctx, 'db'> & { readonly chain: Chain }, payer: Payer): Promise<Funds> {
  const open = await listOpenOf(db, payer, openMax)
  const nonces = open.flatMap(({ settlement }) => (settlement.kind === 'permit2' ? [] : [settlement.nonce]))
  const permits = open.flatMap(({ settlement }) => (settlement.kind === 'permit2' ? [BigInt(settlement.nonce)] : []))
  const { rawBalance, spentNonces, spentPermits } = await chain.payerFunds({
    token: payer.asset as Address,
    account: payer.payer as Address,
    nonces,
    permits,
  })
  const [used, given] = [new Set<Hex>(spentNonces), new Set(spentPermits)]
  const isSpent = ({ settlement }: CheckedRow) =>
    settlement.kind === 'permit2' ? given.has(BigInt(settlement.nonce)) : used.has(settlement.nonce)
  return { rawBalance, spentIds: open.filter(isSpent).map(({ id }) => id) }
}

import { type Address, bytesToHex } from '@purser/protocol'
import { z } from 'zod'
import { createChildAddresses } from '../../src/features/wallets/children/children.ts'
import { createMasterWallet } from '../../src/features/wallets/managed/create.ts'
import { requestSweep } from '../../src/features/wallets/sweep/request.ts'
import type { Ctx } from '../../src/modules.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import { type Db, sql } from '../../src/platform/db/db.ts'
import { id, type MasterWalletId } from '../../src/platform/ids.ts'
import type { SimChain } from './chain.ts'
import type { Chance } from './chance.ts'
import { moneyOf } from './token.ts'
import { Violation } from './violation.ts'

/**
 * An organisation whose children receive deposits, which the relayer sweeps to their master along with everybody's
 * payments.
 */
export interface Sweeper {
  readonly tenant: Tenant
  readonly walletId: MasterWalletId
  readonly children: readonly Address[]
}

const HexText = z.templateLiteral(['0x', z.string()])

const childCount = 6
const depositor: Address = `0x${'7'.repeat(40)}`

export async function aSweeper(ctx: Ctx): Promise<Sweeper> {
  const wallet = await createMasterWallet(ctx, { chain: 'ethereum', supportedTokens: ['USDC'] })
  const walletId = id('mwt').parse(wallet.id)
  const made = [await createChildAddresses(ctx, walletId, { count: childCount })].flat()
  return {
    tenant: ctx.tenant,
    walletId,
    children: made.map(({ address }) => HexText.parse(address)),
  }
}

/** A payment to one of the children. */
export function deposit(chain: SimChain, chance: Chance, { children }: Sweeper): void {
  const value = BigInt(1_500_000 + chance.below(1_000_000))
  const { balances } = chain.head.state
  balances.set(depositor, (balances.get(depositor) ?? 0n) + value)
  chain.addStranger({ kind: 'pay', from: depositor, to: chance.pick(children), value })
}

export async function sweep(ctx: Ctx, { walletId }: Sweeper): Promise<void> {
  await requestSweep(ctx, walletId, { token: 'USDC' })
}

const Row = z.object({
  fromAddress: HexText,
  toAddress: HexText,
  rawAmount: z.string().transform((text) => BigInt(text)),
  nonce: z.instanceof(Uint8Array),
  validBefore: z.date(),
  status: z.string(),
})
const columns = sql`from_address, to_address, raw_amount, nonce, valid_before, status`

/** The keys of the money that the authorizations of sweeps move. */
export async function listSweepKeys(db: Db): Promise<ReadonlySet<string>> {
  const rows = await db.many(Row, sql`select ${columns} from sweep_transfers`)
  return new Set(rows.map(keyOf))
}

/** How the authorization of a sweep is named in the chain's receipts. */
function keyOf({ fromAddress: from, toAddress: to, rawAmount: value, nonce }: z.output<typeof Row>): string {
  return moneyOf({ from, to, value, nonce: bytesToHex(nonce) })
}

/** Whether the key of an authorization, `eip3009 from nonce to value`, is of this movement. */
export function isKeyOf(
  key: string,
  { from, to, rawAmount }: { readonly from: string; readonly to: string; readonly rawAmount: bigint },
): boolean {
  const [, sender, , recipient, value] = key.split(' ')
  return sender === from && recipient === to && value === rawAmount.toString()
}

/**
 * Checks that swept money has moved, at depth, and that failed sweeps moved none; and that at the end all sweeps are
 * over. `isShaken`: final results may have been undone.
 */
export async function checkSweeps(
  db: Db,
  chain: SimChain,
  { isOver, isShaken }: { readonly isOver: boolean; readonly isShaken: boolean },
): Promise<void> {
  const rows = await db.many(Row, sql`select ${columns} from sweep_transfers`)
  for (const row of rows) {
    const { fromAddress: from, rawAmount: value, status } = row
    const name = `a sweep of ${value} from ${from}`
    if (isOver && status !== 'swept' && status !== 'failed') throw new Violation(`${name} never ends: it is ${status}`)
    if (isShaken) continue
    const move = chain.moveOf(keyOf(row))
    if (status === 'failed' && move !== undefined) throw new Violation(`${name} has failed, and its money moved`)
    if (status !== 'swept') continue
    if (move === undefined) throw new Violation(`${name} is done, and its money did not move`)
    if (move.block.number > chain.finalNumber) throw new Violation(`${name} is done before its block is deep enough`)
  }
}

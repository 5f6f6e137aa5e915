import { formatAmount, type Network, requireNetwork, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { z } from 'zod'
import { fail as failChain } from '../../../chain/errors.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import { openAmount, openCursor, type PageQuery, pageOf } from '../../../platform/wire.ts'
import { fail as failWallets } from '../errors.ts'
import { gasOfGasless, isGasless } from '../gasless.ts'
import { requireMasterWallet } from '../managed/managed.ts'
import type { MasterWalletRow } from '../managed/store.ts'
import type { Ctx } from '../ports.ts'
import { fail } from './errors.ts'
import type { Sweep, SweepChild, SweepParams, SweepRequest, SweepSummary } from './schema.ts'
import {
  findSweep,
  findSweptWallet,
  listSweepChildren,
  listSweeps,
  type SweepChildRow,
  type SweepRow,
  type SweepSummaryRow,
} from './store.ts'

export async function getSweep(ctx: Pick<Ctx, 'db' | 'tenant'>, params: z.output<typeof SweepParams>): Promise<Sweep> {
  const sweep = await findSweep(ctx.db, ctx.tenant, params)
  if (sweep === undefined) throw fail('sweep-not-found')
  const children = await listSweepChildren(ctx.db, ctx.tenant, sweep.id)
  return { ...shownSummary(sweep), children: children.map((child) => shownChild(child, sweep.decimals)) }
}

/** The present state of a sweep, for a repeat of the request that created it. */
export async function resumeSweep(ctx: Pick<Ctx, 'db' | 'tenant'>, resourceId: string): Promise<Sweep> {
  const sweepId = id('swp').parse(resourceId)
  const walletId = await findSweptWallet(ctx.db, ctx.tenant, sweepId)
  if (walletId === undefined) throw fail('sweep-not-found')
  return getSweep(ctx, { id: walletId, sweepId })
}

export async function pageOfSweeps(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  walletId: MasterWalletId,
  query: z.output<typeof PageQuery>,
): Promise<Page<SweepSummary>> {
  await requireMasterWallet(ctx, walletId)
  const page = { limit: query.limit, after: openCursor(query.cursor) }
  const rows = await listSweeps(ctx.db, ctx.tenant, walletId, page)
  const shownOf = pageOf(rows, query.limit, (row) => row.id)
  return { ...shownOf, items: shownOf.items.map(shownSummary) }
}

function shownSummary(row: SweepSummaryRow): SweepSummary {
  const {
    id: sweepId,
    masterWalletId,
    chain,
    token,
    trigger,
    status,
    isPartial,
    childCount,
    createdAt,
    completedAt,
  } = row
  return {
    id: sweepId,
    masterWalletId,
    chain,
    token,
    trigger,
    status,
    isPartial,
    childCount,
    amount: formatAmount(row.rawAmount, row.decimals),
    sweptAmount: formatAmount(row.sweptRawAmount, row.decimals),
    createdAt,
    completedAt,
  }
}

function shownChild(row: SweepChildRow, decimals: number): SweepChild {
  const { childAddressId, fromAddress, rawAmount, status, txHash, failureReason } = row
  return {
    childAddressId,
    address: fromAddress,
    amount: formatAmount(rawAmount, decimals),
    status: status === 'planned' || status === 'signed' ? 'pending' : status,
    txHash,
    reason: failureReason,
  }
}

/** A requested sweep, validated against the wallet's chain. */
export interface SweepTerms {
  readonly wallet: MasterWalletRow
  readonly network: Network
  readonly token: TokenInfo
  /** In the token's smallest unit; children with a lower balance are skipped. */
  readonly rawAmountMin: bigint
  readonly childAddressIds: SweepRequest['childAddressIds']
  readonly trigger: SweepRow['trigger']
}

/**
 * Most gas that a child on Tempo costs the operator: its first transaction, to a master that never had the token, used 545,000 (hardfork
 * T4).
 */
export const gasOfTempoTransfer = 700_000n

/** Most gas that the sweep of one child costs the operator on this network. */
export function gasOfEach({ nativeCoin }: Network): bigint {
  return nativeCoin === null ? gasOfTempoTransfer : gasOfGasless
}

/**
 * Terms of a sweep of this wallet. Its token must support signed authorizations, or be on Tempo, where fees can be sponsored. Balances
 * below the smallest payment that is settled, or worth less than the gas of their transfer, are always skipped, since the operator pays the gas:
 * anybody can send dust to a child. Read the gas price of the network before (`recentReads`); without one the gas counts nothing here, and
 * `requireGasPrice` refuses the sweep.
 */
export function sweepTerms(
  ctx: Pick<Ctx, 'settleMicroUsdMin' | 'gasPrices'>,
  wallet: MasterWalletRow,
  request: Pick<SweepRequest, 'token' | 'minAmount' | 'childAddressIds'>,
  trigger: SweepRow['trigger'],
): SweepTerms {
  const network = requireNetwork(wallet.network)
  const at = trigger === 'automatic' ? '/autoSweep' : ''
  const token = sweepableToken(network, request.token, `${at}/token`)
  const terms = { path: `${at}/minAmount`, decimals: token.decimals, least: 0n } as const
  const requested = request.minAmount === undefined ? 1n : openAmount(request.minAmount, terms)
  const gas = gasOfEach(network)
  const nanoUsd = ctx.gasPrices.lowestKnownCostOf(network, gas) ?? 0n
  const least = [requested, 1n, dustOf(ctx.settleMicroUsdMin, token), rawWorth(nanoUsd, token)]
  const rawAmountMin = least.reduce((most, raw) => (raw > most ? raw : most))
  return { wallet, network, token, rawAmountMin, childAddressIds: request.childAddressIds, trigger }
}

/** Throws `chain-unavailable` before any node has reported a gas price: which children are worth their gas is unknown. */
export function requireGasPrice({ gasPrices, chains }: Pick<Ctx, 'gasPrices' | 'chains'>, network: Network): void {
  if (gasPrices.lowestKnownCostOf(chains.on(network).network, 1n) === undefined)
    throw failChain('chain-unavailable', {}, new Error('no node has reported a gas price'))
}

/** Every token that can be swept is a dollar stablecoin. Rounded down. */
function dustOf(microUsd: bigint, { decimals }: TokenInfo): bigint {
  return (microUsd * 10n ** BigInt(decimals)) / 1_000_000n
}

/** The least amount that is worth this many billionths of a US dollar. */
function rawWorth(nanoUsd: bigint, { decimals }: TokenInfo): bigint {
  return (nanoUsd * 10n ** BigInt(decimals) + 999_999_999n) / 1_000_000_000n
}

function sweepableToken(network: Network, symbol: string, path: `${string}/token`): TokenInfo {
  const token = tokenBySymbol(network, symbol)
  if (token === undefined) {
    const known = network.tokens.map((one) => one.symbol).join(', ')
    const message = `is not a token of ${network.name}, which has ${known}`
    throw failWallets('token-not-supported', { errors: [{ path, message }] })
  }
  if (!isGasless(network, token) && network.nativeCoin !== null) throw fail('sweep-not-supported')
  return token
}

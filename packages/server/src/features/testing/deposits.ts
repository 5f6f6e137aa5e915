import { encodeTransfer, type Hex, type Network, parseAmount, tokenBySymbol } from '@purser/protocol'
import type { LaneHandler } from '../../chain/port.ts'
import { failPlatform } from '../../platform/errors.ts'
import { Reply } from '../../platform/operation.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { type FaucetAsset, refuseEmpty } from './faucet.ts'
import type { Ctx, Deps } from './ports.ts'
import { NewTestDeposit, type TestDeposit } from './schema.ts'

const purpose = 'test-deposit'
/** Most of one deposit, in whole tokens or coins: the coin is for gas alone. */
const amountMax = '10000'
const coinMax = '0.1'
/** A transfer of the coin to an account without code costs 21,000. */
const gasOfCoin = 60_000n
const gasOfTransfer = 120_000n
/** Gas limit: more than a first transfer to an account uses on Tempo. */
const gasOfTempoTransfer = 700_000n

/**
 * Sends test money from the faucet to a wallet, on its test network: a real deposit, which the watcher finds, books, screens and reports like any
 * other; a deposit of the native coin has no log, so only the balance shows it. The transfer is planned in one transaction with the caller's
 * Idempotency-Key, so that a repeat sends nothing more.
 */
export async function createTestDeposit(ctx: Ctx, request: NewTestDeposit): Promise<Reply> {
  const { faucet, tenant } = ctx
  if (tenant.environment !== 'test' || faucet === undefined) throw fail('test-deposits-off')
  const wallet = await ctx.receivingWallets.find(tenant, request.walletId)
  if (wallet === undefined) throw fail('wallet-not-found')
  const { network } = wallet
  if (!network.isTestnet) throw new Error('a wallet of the test environment is on a main network')
  const asset = assetOf(network, request.token)
  if (asset === undefined) throw fail('token-not-supported')
  const rawAmount = amountOf(request.amount, asset)
  await refuseEmpty(ctx, { network, asset, rawAmount, account: faucet.address })
  await ctx.lanes.prepare(network, faucet.address)
  await ctx.db.tx(async (tx) => {
    await ctx.lanes.plan(tx, faucet.address, { network, ...callOf(asset, wallet, rawAmount), purpose })
    const details = { token: asset.symbol, amount: request.amount, network: network.name }
    await ctx.audit(tx, { action: 'test.deposits.create', target: wallet.id, details })
    await ctx.idempotency?.commit(tx, JSON.stringify(request))
  })
  ctx.lanes.notify(network)
  return respond(faucet.address, wallet, request)
}

/** Returns the response to a repeat whose first response was never stored; the request contains all of it. */
export async function repeatedDeposit(
  ctx: Pick<Ctx, 'faucet' | 'receivingWallets' | 'tenant'>,
  resource: string,
): Promise<Reply> {
  const request = NewTestDeposit.parse(JSON.parse(resource))
  const wallet = await ctx.receivingWallets.find(ctx.tenant, request.walletId)
  if (wallet === undefined || ctx.faucet === undefined) throw fail('wallet-not-found')
  return respond(ctx.faucet.address, wallet, request)
}

function respond(from: TestDeposit['from'], wallet: ReceivingWallet, { token, amount }: NewTestDeposit): Reply {
  const { id: walletId, chain, address: to } = wallet
  const body: TestDeposit = { walletId, chain, token, amount, from, to, status: 'queued' }
  // The Idempotency-Key stores this response.
  return new Reply(202, body, {}, { isOpen: false })
}

/** A token of the network, or its coin, which has no address. */
function assetOf(network: Network, symbol: string): FaucetAsset | undefined {
  return symbol === network.nativeCoin?.symbol ? network.nativeCoin : tokenBySymbol(network, symbol)
}

function callOf({ address: token }: FaucetAsset, { address, network }: ReceivingWallet, rawAmount: bigint) {
  if (token === undefined) return { to: address, data: '0x' as Hex, value: rawAmount, gasLimit: gasOfCoin }
  const gasLimit = network.nativeCoin === null ? gasOfTempoTransfer : gasOfTransfer
  return { to: token, data: encodeTransfer(address, rawAmount), value: 0n, gasLimit }
}

function amountOf(text: string, { decimals, address }: FaucetAsset): bigint {
  const most = address === undefined ? coinMax : amountMax
  const [raw, rawMax] = [parseAmount(text, decimals), parseAmount(most, decimals)]
  if (typeof raw === 'bigint' && typeof rawMax === 'bigint' && raw > 0n && raw <= rawMax) return raw
  const message = `must be a decimal amount above 0 and at most ${most}, with at most ${decimals} decimals`
  throw failPlatform('validation-error', { errors: [{ path: '/amount', message }] })
}

/** Only logs outcomes: the watcher books the deposit from its transfer log. */
export function testDepositHandler({ log }: Pick<Deps, 'log'>): LaneHandler {
  return {
    purpose,
    onReplaced: async (_tx, transactions) => {
      const ids = transactions.map(({ id }) => id)
      log.warn({ ids }, 'test deposits are lost: somebody else sends from the faucet')
    },
    onFinal: async (_tx, mined) => {
      const ids = mined.filter(({ receipt }) => receipt.status === 'reverted').map(({ transaction }) => transaction.id)
      if (ids.length > 0) log.warn({ ids }, 'test deposits were refused by their token; the faucet may be empty')
    },
  }
}

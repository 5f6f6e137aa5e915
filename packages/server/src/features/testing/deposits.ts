import { encodeTransfer, parseAmount, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { LaneHandler } from '../../chain/port.ts'
import { failPlatform } from '../../platform/errors.ts'
import { Reply } from '../../platform/operation.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { refuseEmpty } from './clock.ts'
import { fail } from './errors.ts'
import type { Ctx, Deps } from './ports.ts'
import { NewTestDeposit, type TestDeposit } from './schema.ts'

const purpose = 'test-deposit'
/** Most whole tokens of one deposit. */
const amountMax = 10_000n
const gasOfTransfer = 120_000n
/** Gas limit: more than a first transfer to an account uses on Tempo. */
const gasOfTempoTransfer = 700_000n

/**
 * Sends test money from the faucet to a wallet, on its test network: a real deposit, which the watcher finds, books, screens and
 * reports like any other. The transfer is planned in one transaction with the caller's Idempotency-Key, so that a repeat sends
 * nothing more.
 */
export async function createTestDeposit(ctx: Ctx, request: NewTestDeposit): Promise<Reply> {
  const { faucet, tenant } = ctx
  if (tenant.environment !== 'test' || faucet === undefined) throw fail('test-deposits-off')
  const wallet = await ctx.receivingWallets.find(tenant, request.walletId)
  if (wallet === undefined) throw fail('wallet-not-found')
  const { network } = wallet
  if (!network.isTestnet) throw new Error('a wallet of the test environment is on a main network')
  const token = tokenBySymbol(network, request.token)
  if (token === undefined) throw fail('token-not-supported')
  const rawAmount = amountOf(request.amount, token)
  await refuseEmpty(ctx, { network, token, rawAmount, account: faucet.address })
  await ctx.lanes.prepare(network, faucet.address)
  await ctx.db.tx(async (tx) => {
    const data = encodeTransfer(wallet.address, rawAmount)
    const gasLimit = network.nativeCoin === null ? gasOfTempoTransfer : gasOfTransfer
    await ctx.lanes.plan(tx, faucet.address, { network, to: token.address, data, value: 0n, gasLimit, purpose })
    const details = { token: token.symbol, amount: request.amount, network: network.name }
    await ctx.audit(tx, { action: 'testing.deposits.create', target: wallet.id, details })
    await ctx.idempotency?.commit(tx, JSON.stringify(request))
  })
  ctx.lanes.notify(network)
  return answer(faucet.address, wallet, request)
}

/** Returns the response to a repeat whose first response was never stored; the request contains all of it. */
export async function repeatedDeposit(ctx: Ctx, resource: string): Promise<Reply> {
  const request = NewTestDeposit.parse(JSON.parse(resource))
  const wallet = await ctx.receivingWallets.find(ctx.tenant, request.walletId)
  if (wallet === undefined || ctx.faucet === undefined) throw fail('wallet-not-found')
  return answer(ctx.faucet.address, wallet, request)
}

function answer(from: TestDeposit['from'], wallet: ReceivingWallet, { token, amount }: NewTestDeposit): Reply {
  const { id: walletId, chain, address: to } = wallet
  const body: TestDeposit = { walletId, chain, token, amount, from, to, status: 'queued' }
  // The Idempotency-Key stores this response.
  return new Reply(202, body, {}, false)
}

function amountOf(text: string, { decimals }: TokenInfo): bigint {
  const raw = parseAmount(text, decimals)
  if (typeof raw === 'bigint' && raw > 0n && raw <= amountMax * 10n ** BigInt(decimals)) return raw
  const message = `must be a decimal amount above 0 and at most ${amountMax}, with at most ${decimals} decimals`
  throw failPlatform('validation-error', { errors: [{ path: '/amount', message }] })
}

/** A deposit is known by its transfer's log, so that nothing is written here. */
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

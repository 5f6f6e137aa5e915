import { bytesToHex, type Network, offersOfV2, signedHeader, tokenByAddress } from '@purser/protocol'
import type { z } from 'zod'
import type { PaymentId } from '../../platform/ids.ts'
import {
  challenge,
  getPayment,
  type Payment,
  payableTokens,
  settlementState,
  verifyPayment,
} from '../payments/index.ts'
import { fail } from './errors.ts'
import { refuseEmpty } from './faucet.ts'
import type { Ctx } from './ports.ts'
import type { NewTestPayment } from './schema.ts'

/** The route that a test payment is for. Nothing is fetched from it. */
const resource = 'https://api.example.com/forecast'

/**
 * Pays a wallet of the test environment from the faucet, which signs the wallet's own x402 challenge. The payment is verified and
 * settled on the test network like one of any client, and stored with the caller's Idempotency-Key, so that a repeat pays nothing more.
 */
export async function createTestPayment(ctx: Ctx, request: NewTestPayment): Promise<z.input<typeof Payment>> {
  const { faucet, tenant } = ctx
  if (tenant.environment !== 'test' || faucet === undefined) throw fail('test-payments-off')
  const wallet = await ctx.receivingWallets.find(tenant, request.walletId)
  if (wallet === undefined) throw fail('wallet-not-found')
  payableTokens(ctx, wallet)
  const sold = { ...request, resource, method: 'GET' }
  const nowMs = ctx.clock.now().getTime()
  const offer = offerOf(await x402Challenge(ctx, sold), nowMs)
  const { network, token, rawAmount } = offer
  await refuseEmpty(ctx, { network, asset: token, rawAmount, account: faucet.address })
  const nonce = bytesToHex(ctx.random.bytes(32))
  const { domain, authorization, credential } = offer.draft({ from: faucet.address, nonce, nowMs })
  const { value } = signedHeader(credential, await faucet.signTransferWithAuthorization(domain, authorization))
  const { paymentId } = await verifyPayment(ctx, {
    ...sold,
    protocol: 'x402',
    currency: 'USD',
    credential: value,
    reportsDelivery: false,
  })
  return settledTestPayment(ctx, paymentId)
}

/** Requests the settlement of a recorded test payment unless it was requested before, and returns the payment as it is now. */
export async function settledTestPayment(ctx: Ctx, paymentId: string): Promise<z.input<typeof Payment>> {
  await settlementState(ctx, paymentId)
  return getPayment(ctx, paymentId as PaymentId)
}

async function x402Challenge(
  ctx: Ctx,
  { walletId, resource, price }: NewTestPayment & { readonly resource: string },
): Promise<string> {
  const order = { walletId, resource, price, intent: 'charge', acceptX402: true, acceptMPP: false } as const
  const made = await challenge(ctx, { ...order, signOffers: false, compact: false, credentialHeader: 'Authorization' })
  if (Array.isArray(made) || made.x402 === null)
    throw new Error('a wallet that authorizations pay has no x402 challenge')
  return made.x402
}

/** Returns the first offer that a signature pays on a test network: the faucet signs for no other. */
function offerOf(header: string, nowMs: number) {
  const isAllowed = ({ isTestnet }: Network) => isTestnet
  for (const reading of offersOfV2({ nowMs, isAllowed, tokenAt: tokenByAddress }, header))
    if ('offer' in reading && reading.offer.kind === 'authorization') return reading.offer
  throw new Error('a challenge of the test environment has no offer on a test network')
}

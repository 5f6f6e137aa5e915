import { type Chain, chains, checksumAddress, isChain, type Network, resolveNetwork } from '@purser/protocol'
import { callerId } from '../../../platform/ctx.ts'
import { isProblem } from '../../../platform/errors.ts'
import { logIdOf, newId } from '../../../platform/ids.ts'
import { isServiceAddress, type ReceivingWallet } from '../../wallets/index.ts'
import { refuseBelowMinimum, refused } from '../credential.ts'
import type { Claim, Judged, Reading } from '../methods/method.ts'
import { namePayment, type PaymentName } from '../new-payment.ts'
import type { Ctx } from '../ports.ts'
import type { NewPayment } from '../store.ts'
import { extensionsOf, type PaidResource, resourceOf } from './paid-resource.ts'
import type { FacilitatorBody } from './schema.ts'

/**
 * Admits a payment: refuses it, cheapest checks first, or records it once for all entry points and organizations. Throws the
 * protocol's refusal, the problem `duplicate-payment` if the claim is taken, and the problems of limits and nodes.
 */
export async function admit(
  ctx: Ctx,
  body: FacilitatorBody,
  { claim, judge }: Reading,
  door: 'facilitator' | 'upfront',
): Promise<void> {
  const judged = judge()
  if (judged.rawAmount === 0n) throw refused('invalid_payment_requirements', { message: 'nothing is to be paid' })
  refuseBelowMinimum(ctx, claim.network, claim.token, judged.rawAmount)
  const name = await namePayment(ctx, extensionsOf(body), claim.fingerprint)
  const payTo = checksumAddress(claim.payTo, ctx.signatures.keccak)
  if (isServiceAddress(ctx, payTo))
    throw refused('invalid_payment_requirements', { message: 'payTo is a token or an address of this service' })
  const wallet = await ctx.receivingWallets.findByAddress(ctx.tenant, claim.network, payTo)
  if (wallet?.isRetired === true)
    throw refused('invalid_payment_requirements', { message: 'payTo is a wallet that is retired' })
  if (wallet?.isActive === false)
    throw refused('invalid_payment_requirements', { message: 'payTo is a wallet that screening flagged' })
  const payment: NewPayment = {
    ...newRow(ctx, claim, judged),
    ...name,
    ...placeOf(ctx, claim.network, wallet),
    ...resourceOf(body),
    payTo,
    door,
  }
  const funds = await judged.refuseByChain(payment)
  await ctx.recordPayment({ ctx, payment, funds }).catch(async (error: unknown) => {
    // Of two payments that use one identifier at the same time, the second is refused because of the identifier.
    if (isProblem(error, 'duplicate-payment')) await namePayment(ctx, extensionsOf(body), claim.fingerprint)
    throw error
  })
}

function newRow(
  ctx: Ctx,
  claim: Claim,
  judged: Judged,
): Omit<NewPayment, keyof PaidResource | 'walletId' | 'chain' | 'door' | 'payTo' | keyof PaymentName> {
  const { network, token } = claim
  const id = newId('pay', ctx)
  return {
    id,
    logId: logIdOf(id),
    apiKeyId: callerId(ctx.actor),
    protocol: 'x402',
    protocolVersion: claim.x402Version,
    claimKey: claim.claimKey,
    scheme: judged.scheme,
    challengeId: null,
    network: network.name,
    token: token.symbol,
    asset: token.address,
    decimals: token.decimals,
    rawAmount: judged.rawAmount,
    payer: claim.payer,
    settlement: judged.settlement,
    validBefore: judged.validBefore,
    method: null,
    status: 'verified',
    txHash: null,
    settlingAt: null,
    settledAt: null,
    delivery: null,
    createdAt: ctx.clock.now(),
  }
}

function placeOf(
  ctx: Ctx,
  network: Network,
  wallet: ReceivingWallet | undefined,
): Pick<NewPayment, 'walletId' | 'chain'> {
  return { walletId: wallet?.id ?? null, chain: wallet?.chain ?? chainOf(ctx, network) }
}

/** Returns the network's name in the public API: its own, or for test networks without one the mainnet's. */
function chainOf(ctx: Ctx, network: Network): Chain {
  if (isChain(network.name)) return network.name
  const named = chains.find((chain) => resolveNetwork(chain, ctx.tenant.environment)?.name === network.name)
  if (named === undefined) throw new Error(`${network.name} has no name in the public API`)
  return named
}

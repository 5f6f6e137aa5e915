import {
  type AuthorizationVerdict,
  checkAuthorization,
  decodePayment,
  domainSeparator,
  type Expected,
  type Network,
  type PaymentPayload,
  type Reason,
  type TokenInfo,
} from '@purser/protocol'
import { unixSeconds } from '../../platform/clock.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { VerifyRequest } from './schema.ts'

/** Returns the refusal of a credential. The caller receives only the protocol's own reason. */
export function refused(
  reason: Reason | 'stub_not_allowed' | 'insufficient_funds' | 'payer_sanctioned',
  members: Readonly<Record<string, unknown>> = {},
): Error {
  return fail('payment-verification-failed', { reason, ...members })
}

/** Whether the credential is a stub of the test environment (Authentication, point 2 of the service document). */
export function isStub(credential: string): boolean {
  return /^stub_payment_[\x21-\x7e]{1,200}$/.test(credential)
}

export type GoodVerdict = Extract<AuthorizationVerdict, { ok: true }>

export interface JudgedCredential {
  readonly payload: PaymentPayload
  readonly token: TokenInfo
  readonly verdict: GoodVerdict
}

const separators = new Map<string, Uint8Array>()

/** Returns the token's EIP-712 domain separator, hashed once per process. */
export function separatorOf(ctx: Pick<Ctx, 'signatures'>, network: Network, token: TokenInfo): Uint8Array {
  const key = `${network.caip2}/${token.address}`
  const known = separators.get(key)
  if (known !== undefined) return known
  if (token.eip712 === null) throw new Error(`${token.symbol} on ${network.name} has no EIP-712 domain`)
  const made = domainSeparator(
    { ...token.eip712, chainId: network.chainId, verifyingContract: token.address },
    ctx.signatures.keccak,
  )
  separators.set(key, made)
  return made
}

/**
 * Checks everything about an x402 credential that does not need the chain. Version 1 does not name the token, so every token that
 * the wallet accepts is tried; the signature fits only one domain.
 */
export function judgeCredential(
  ctx: Ctx,
  credential: string,
  tokens: readonly TokenInfo[],
  expect: (token: TokenInfo) => Expected,
): JudgedCredential {
  const decoded = decodePayment(credential)
  if (!decoded.ok) throw refused(decoded.fault.reason, { path: decoded.fault.path, message: decoded.fault.message })
  return judgePayment(ctx, decoded.value, tokens, expect)
}

/** Checks a payment that is already decoded, or that was built from another protocol's credential, as `judgeCredential` does. */
export function judgePayment(
  ctx: Ctx,
  payload: PaymentPayload,
  tokens: readonly TokenInfo[],
  expect: (token: TokenInfo) => Expected,
): JudgedCredential {
  const candidates =
    payload.x402Version === 2
      ? tokens.filter((token) => token.address.toLowerCase() === payload.accepted.asset.toLowerCase())
      : tokens
  const judged = (candidates.length > 0 ? candidates : tokens.slice(0, 1)).map((token) => ({
    token,
    verdict: check(ctx, payload, expect(token)),
  }))
  const best =
    judged.find(({ verdict }) => verdict.ok && verdict.signatureKind === 'eoa') ??
    judged.find(({ verdict }) => verdict.ok) ??
    judged[0]
  if (best === undefined) throw refused('invalid_payment_requirements')
  if (!best.verdict.ok) throw refused(best.verdict.reason, { payer: best.verdict.payer })
  return { payload, token: best.token, verdict: best.verdict }
}

function check(ctx: Ctx, payload: PaymentPayload, expected: Expected): AuthorizationVerdict {
  return checkAuthorization({
    payload,
    expected,
    nowSeconds: unixSeconds(ctx.clock.now()),
    recover: ctx.signatures.recover,
    keccak: ctx.signatures.keccak,
    domainSeparator: separatorOf(ctx, expected.network, expected.token),
  })
}

/** Refuses a credential whose caller expects another network than the wallet's. */
export function refuseOtherNetwork(request: VerifyRequest, wallet: ReceivingWallet): void {
  if (request.network !== undefined && request.network !== wallet.network.caip2)
    throw refused('invalid_exact_evm_network_mismatch')
}

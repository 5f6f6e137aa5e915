import { challengeBinding, encodeMppJson, formatChallenge } from '@purser/protocol'
import type { ReceivingWallet } from '../../wallets/index.ts'
import type { Ctx } from '../ports.ts'
import { isFree, isWorthSettling } from '../price.ts'
import type { ChallengeRequest } from '../schema.ts'
import { type Scope, scopeOf } from './scope.ts'
import { type MppTerms, mppTermsOf } from './terms.ts'

const nonceBytes = 16
/** Maximum length of a description in an offer, in UTF-16 units. Every offer of a header repeats it. */
const descriptionMax = 160

/**
 * Returns a function that mints values of `WWW-Authenticate` for this price, each with its own randomness, so that no two payers
 * share an id; the common parts are computed once. Undefined if MPP cannot pay the wallet. An `intent` of `session` requests a
 * pass and is still a `charge`: official clients pay a `session` only as a payment channel.
 */
export async function createMppMint(
  ctx: Ctx,
  request: ChallengeRequest,
  wallets: readonly ReceivingWallet[],
  expiresAt: Date,
): Promise<(() => string) | undefined> {
  const terms = allTermsOf(ctx, request, wallets)
  if (terms.length === 0) return undefined
  const [{ current: mac }, feePayer] = await Promise.all([ctx.mppSecrets.macs(ctx.tenant), paysFee(ctx, terms)])
  const scope = scopeOf(request)
  const common = commonParameters(request, scope, expiresAt)
  const drafts = terms.map((one) => {
    const draft = { ...common, method: one.method.name, request: encodedRequest(one, feePayer) }
    return { draft, binding: challengeBinding(draft) }
  })
  const mintOne = ({ draft, binding }: (typeof drafts)[number]): string => {
    const opaque = opaqueOf(ctx, scope, request.method)
    return formatChallenge({ ...draft, opaque, id: mac(`${binding}${opaque}`) })
  }
  return () => drafts.map(mintOne).join(', ')
}

/** Payment terms and the wallet that they pay. */
type WalletTerms = MppTerms & { readonly wallet: ReceivingWallet }

/**
 * Most offers of a challenge, those of the first wallet first. The header stays well below the 8 KB that clients and proxies
 * accept.
 */
const offersMax = 4

/** Returns the terms of all wallets. A price of zero has one proof, whatever the number of wallets. */
function allTermsOf(ctx: Ctx, request: ChallengeRequest, wallets: readonly ReceivingWallet[]): readonly WalletTerms[] {
  const requested = isFree(request.price) ? wallets.slice(0, 1) : wallets
  const terms = requested.flatMap((wallet) => mppTermsOf(ctx, wallet, request.price).map((one) => ({ ...one, wallet })))
  return terms
    .filter(({ network, token, rawAmount }) => rawAmount === 0n || isWorthSettling(ctx, network, token, rawAmount))
    .slice(0, offersMax)
}

/** Whether the service pays the payer's fee, if any of these methods permits that. */
async function paysFee(ctx: Ctx, terms: readonly MppTerms[]): Promise<boolean> {
  const paid = new Map(terms.filter(({ rawAmount }) => rawAmount > 0n).map((one) => [one.network.name, one]))
  const offers = await Promise.all([...paid.values()].map(({ method, network }) => method.paysFee(ctx, network)))
  return offers.includes(true)
}

function commonParameters(request: ChallengeRequest, { realm }: Scope, expiresAt: Date) {
  return {
    realm,
    intent: 'charge',
    expires: expiresAt.toISOString(),
    digest: request.digest,
    description: shortened(request.description),
    header: request.credentialHeader === 'Authorization' ? undefined : request.credentialHeader,
  }
}

function encodedRequest({ method, network, token, rawAmount, wallet }: WalletTerms, feePayer: boolean) {
  const { chainId } = network
  const requested = { amount: rawAmount.toString(), currency: token.address, recipient: wallet.address, chainId }
  return encodeMppJson(method.requestOf(requested, token, feePayer))
}

/**
 * Returns canonical JSON of `n`, the challenge's own randomness, `r`, its scope, and `m`, the method that the price is for. None
 * of them needs an escape.
 */
function opaqueOf(ctx: Ctx, scope: Scope, method: string | undefined): string {
  const nonce = Buffer.from(ctx.random.bytes(nonceBytes)).toString('base64url')
  const priced = method === undefined ? '' : `"m":"${method}",`
  return Buffer.from(`{${priced}"n":"${nonce}","r":"${scope.digest}"}`).toString('base64url')
}

/** Returns the description on one line: a header must not contain control characters. */
function shortened(description: string | undefined): string | undefined {
  const line = description?.replaceAll(/[ \x00-\x1f\x7f]+/g, ' ').trim() ?? ''
  if (line === '') return undefined
  return line.length <= descriptionMax ? line : `${line.slice(0, descriptionMax - 1).toWellFormed()}…`
}

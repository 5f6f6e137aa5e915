import {
  chargeNonce,
  decodeMppJson,
  formatMppCredential,
  type JsonObject,
  type MppChallenge,
  networkByCaip2,
  parseChallenges,
  parseEvmChargeRequest,
  proofTypedData,
  tokenByAddress,
} from '@purser/protocol'
import type { LocalAccount } from 'viem'
import type { Answer, Authorization } from './world.ts'

/** A test's changes: to the authorization before it is signed, and to the finished credential. */
export interface MppChanges {
  readonly sign?: Partial<Authorization>
  readonly after?: (credential: EchoedCredential) => void
}

export interface EchoedCredential {
  challenge: Record<string, unknown>
  payload: Record<string, unknown>
  source?: unknown
}

/** The offers of a challenge response, or of one of those that `count` gives. */
export function offersOf(response: Pick<Answer, 'body'> | Record<string, unknown>): MppChallenge[] {
  const body: object =
    'body' in response && typeof response.body === 'object' && response.body !== null ? response.body : response
  return parseChallenges(String(Reflect.get(body, 'mpp')))
}

export function offerOf(response: Pick<Answer, 'body'> | Record<string, unknown>): MppChallenge {
  const [offer] = offersOf(response)
  if (offer === undefined) throw new Error('the challenge offers nothing by MPP')
  return offer
}

/** The decoded request of an offer. */
export function requestOf(offer: MppChallenge): JsonObject {
  const request = decodeMppJson(offer.request)
  if (request === undefined) throw new Error('the request cannot be read')
  return request
}

/** Pays an `evm/charge` as an official client does, with an EIP-3009 authorization whose nonce comes from the challenge. */
export async function payByEvmCharge(
  account: LocalAccount,
  offer: MppChallenge,
  changes: MppChanges = {},
): Promise<string> {
  const authorization = { ...authorizationFor(account, offer), ...changes.sign }
  const payload = { type: 'authorization', ...authorization, signature: await signed(account, offer, authorization) }
  return credentialOf(account, offer, payload, changes)
}

/** Pays a price of zero with a proof of the account. */
export async function payByProof(
  account: LocalAccount,
  offer: MppChallenge,
  changes: Pick<MppChanges, 'after'> & { readonly about?: Partial<Parameters<typeof proofTypedData>[0]> } = {},
): Promise<string> {
  const { id: challengeId, realm } = offer
  const subject = { chainId: chainIdOf(offer), account: account.address, challengeId, realm, ...changes.about }
  const signature = await account.signTypedData(proofTypedData(subject))
  return credentialOf(account, offer, { type: 'proof', signature }, changes)
}

export function authorizationFor(account: LocalAccount, offer: MppChallenge): Authorization {
  const request = parseEvmChargeRequest(requestOf(offer))
  if (request === undefined) throw new Error('not an evm/charge')
  return {
    from: account.address,
    to: request.recipient,
    value: request.amount,
    validAfter: '0',
    validBefore: String(Math.floor(Date.parse(offer.expires ?? '') / 1000)),
    nonce: chargeNonce(offer.id, offer.realm),
  }
}

function signed(account: LocalAccount, offer: MppChallenge, authorization: Authorization): Promise<`0x${string}`> {
  const request = parseEvmChargeRequest(requestOf(offer))
  const network = networkByCaip2(`eip155:${request?.chainId}`)
  const token = network && tokenByAddress(network, request?.currency ?? '')
  if (network === undefined || token?.eip712 == null) throw new Error('the token takes no signatures')
  return account.signTypedData({
    domain: { ...token.eip712, chainId: network.chainId, verifyingContract: token.address },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    },
  })
}

function credentialOf(
  account: LocalAccount,
  offer: MppChallenge,
  payload: Record<string, unknown>,
  { after }: Pick<MppChanges, 'after'>,
): string {
  const source = `did:pkh:eip155:${chainIdOf(offer)}:${account.address}`
  const whole = formatMppCredential({ challenge: offer, payload, source })
  if (after === undefined) return whole
  const credential: EchoedCredential = JSON.parse(Buffer.from(whole.slice('Payment '.length), 'base64url').toString())
  after(credential)
  return `Payment ${Buffer.from(JSON.stringify(credential)).toString('base64url')}`
}

function chainIdOf(offer: MppChallenge): number {
  return Number(Reflect.get(Object(requestOf(offer).methodDetails), 'chainId'))
}

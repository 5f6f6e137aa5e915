import { secp256k1 } from '@noble/curves/secp256k1.js'
import { privateKeyToAccount } from 'viem/accounts'
import {
  type Address,
  type AuthorizationVerdict,
  bytesToHex,
  checkAuthorization,
  domainSeparator,
  type Expected,
  type HdCurve,
  type Hex,
  keccak256,
  type Network,
  networkByCaip2,
  type PaymentPayload,
  type PaymentPayloadV1,
  type PaymentPayloadV2,
  type Recover,
  type TokenInfo,
  tokenBySymbol,
} from '../src/index.ts'

/** A payer, a price and a stopped clock. */
export const payer = privateKeyToAccount('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
export const stranger = privateKeyToAccount('0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a')
export const payTo: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
export const nowSeconds = 1_740_672_100
export const network: Network = must(networkByCaip2('eip155:84532'))
export const token: TokenInfo = must(tokenBySymbol(network, 'USDC'))
export const expected: Expected = { network, token, rawAmount: 10_000n, payTo }
const separator = separatorOf(network, token)

export type Authorization = PaymentPayloadV2['payload']['authorization']

export const authorization: Authorization = {
  from: payer.address,
  to: payTo,
  value: '10000',
  validAfter: '1740672089',
  validBefore: '1740672154',
  nonce: '0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480',
}

export const accepted: PaymentPayloadV2['accepted'] = {
  scheme: 'exact',
  network: network.caip2,
  amount: '10000',
  asset: token.address,
  payTo,
  maxTimeoutSeconds: 60,
  extra: { name: 'USDC', version: '2' },
}

export const typedData = {
  primaryType: 'TransferWithAuthorization',
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
} as const

const { Point } = secp256k1
const order = Point.Fn.ORDER

/** secp256k1 in JavaScript, as a browser would bring it. */
export const curve: HdCurve = {
  publicKeyOf: (privateKey) => secp256k1.getPublicKey(privateKey, false),
  addToPublicKey(publicKey, tweak) {
    const scalar = Point.Fn.fromBytes(tweak, true)
    if (scalar >= order) return undefined
    const base = Point.fromBytes(publicKey)
    const sum = scalar === 0n ? base : base.add(Point.BASE.multiply(scalar))
    return sum.is0() ? undefined : sum.toBytes(false)
  },
  addToPrivateKey(privateKey, tweak) {
    const [key, add] = [privateKey, tweak].map((bytes) => BigInt(bytesToHex(bytes)))
    if (key === undefined || add === undefined || add >= order || (key + add) % order === 0n) return undefined
    return Point.Fn.toBytes((key + add) % order)
  },
}

/** Public key recovery in JavaScript, likewise. */
export const recover: Recover = (hash, signature64, recovery) => {
  try {
    const signature = secp256k1.Signature.fromBytes(signature64, 'compact').addRecoveryBit(recovery)
    return signature.recoverPublicKey(hash).toBytes(false)
  } catch {
    return undefined
  }
}

export function separatorOf(on: Network, of: TokenInfo): Uint8Array {
  const { name, version } = must(of.eip712)
  return domainSeparator({ name, version, chainId: on.chainId, verifyingContract: of.address })
}

export function sign(message: Authorization, domainName = 'USDC', signer = payer): Promise<Hex> {
  return signer.signTypedData({
    ...typedData,
    domain: { name: domainName, version: '2', chainId: network.chainId, verifyingContract: token.address },
    message: {
      ...message,
      value: BigInt(message.value),
      validAfter: BigInt(message.validAfter),
      validBefore: BigInt(message.validBefore),
    },
  })
}

export async function paymentV2(changes: Partial<Authorization> = {}): Promise<PaymentPayloadV2> {
  const message = { ...authorization, ...changes }
  return { x402Version: 2, accepted, payload: { signature: await sign(message), authorization: message } }
}

export async function paymentV1(changes: Partial<Authorization> = {}): Promise<PaymentPayloadV1> {
  const message = { ...authorization, ...changes }
  const payload = { signature: await sign(message), authorization: message }
  return { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
}

export function judge(payload: PaymentPayload, wanted = expected, now = nowSeconds): AuthorizationVerdict {
  return checkAuthorization({
    payload,
    expected: wanted,
    nowSeconds: now,
    recover,
    keccak: keccak256,
    domainSeparator: separator,
  })
}

export function must<T>(value: T | undefined | null): T {
  if (value === undefined || value === null) throw new Error('the fixture is broken')
  return value
}

import type { Network, SupportedKind } from '@purser/protocol'
import type { FacilitatorBody } from '../facilitator/schema.ts'
import type { KindsCtx, MppMethod, PaymentMethod, Scheme } from './method.ts'
import { evmCharge } from './mpp-evm/charge.ts'
import { tempoCharge } from './mpp-tempo/verify.ts'
import { exactEip3009 } from './x402-exact/verify.ts'
import { permit2 } from './x402-permit2/scheme.ts'

/** Every way to pay. A body of x402 is read by the first scheme that accepts it; the last one accepts every body. */
const methods: readonly PaymentMethod[] = [
  { scheme: permit2 },
  { mpp: evmCharge },
  { mpp: tempoCharge },
  { scheme: exactEip3009 },
]

const schemes = methods.flatMap(({ scheme }) => scheme ?? [])
const mppMethods = methods.flatMap(({ mpp }) => mpp ?? [])

/** Returns the scheme that reads the body: by the server's requirements, and by what was signed. */
export function schemeOf(body: FacilitatorBody): Scheme {
  const found = schemes.find(({ accepts }) => accepts(body))
  if (found === undefined) throw new Error('no scheme accepts the body')
  return found
}

/** Returns the kinds of payment that the schemes add to `/supported` on these networks. */
export async function additionalKinds(ctx: KindsCtx, networks: readonly Network[]): Promise<readonly SupportedKind[]> {
  return (await Promise.all(schemes.map(({ kinds }) => kinds?.(ctx, networks) ?? []))).flat()
}

/** The names of MPP's methods, such as `evm`. */
export const mppMethodNames: readonly string[] = mppMethods.map(({ name }) => name)

/** Returns the method of MPP that a challenge names. */
export function mppMethodNamed(name: string): MppMethod | undefined {
  return mppMethods.find((method) => method.name === name)
}

/** Returns the method of MPP by which wallets on this network are paid. */
export function mppMethodOn(network: Network): MppMethod {
  const found = mppMethods.find(({ isOn }) => isOn(network))
  if (found === undefined) throw new Error(`no method of MPP pays on ${network.name}`)
  return found
}

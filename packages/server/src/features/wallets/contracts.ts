import {
  type Address,
  multicall3Address,
  networks,
  permit2Address,
  permit2Proxies,
  sameAddress,
} from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'

/** Tokens of every network, and the contracts that payments call: what is sent to one of them is lost. */
const contracts: ReadonlySet<string> = new Set(
  [
    ...networks.flatMap(({ tokens }) => tokens.map(({ address }) => address)),
    multicall3Address,
    permit2Address,
    ...Object.values(permit2Proxies),
  ].map((address) => address.toLowerCase()),
)

/** Whether an address is a token, a contract that this service calls, or the account that sends settlements, so that nobody there can use money. */
export function isServiceAddress({ settlerAddress }: Pick<Ctx, 'settlerAddress'>, address: Address): boolean {
  return contracts.has(address.toLowerCase()) || sameAddress(address, settlerAddress)
}

/** 422 for an address that can receive money and never spend it; `path` names the member of the body. */
export function refuseServiceAddress(ctx: Pick<Ctx, 'settlerAddress'>, address: Address, path: string): void {
  if (!isServiceAddress(ctx, address)) return
  const message = 'is a token or a contract or account of this service: money sent there is lost'
  throw failPlatform('validation-error', { errors: [{ path, message }] })
}

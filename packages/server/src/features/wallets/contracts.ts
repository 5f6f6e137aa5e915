import {
  type Address,
  type Hex,
  multicall3Address,
  type Network,
  networks,
  permit2Address,
  permit2Proxies,
  sameAddress,
  selectorOf,
  tempoFeeManager,
  tempoNonceManager,
} from '@purser/protocol'
import type { Chain } from '../../chain/port.ts'
import { failPlatform, isProblem } from '../../platform/errors.ts'
import { policyGuard } from './deposits/booking.ts'
import type { Ctx } from './ports.ts'

/** Tokens of every network, and the contracts that payments call: money sent to one of them is lost. */
const contracts: ReadonlySet<string> = new Set(
  [
    ...networks.flatMap(({ tokens }) => tokens.map(({ address }) => address)),
    multicall3Address,
    permit2Address,
    ...Object.values(permit2Proxies),
    tempoNonceManager,
    tempoFeeManager,
    policyGuard,
  ].map((address) => address.toLowerCase()),
)

/**
 * Addresses that a network reserves: precompiles (below 0x10000, the burn address 0xdead among them), predeploys of the OP Stack, and every
 * TIP-20 token of Tempo.
 */
const reserved = /^0x(?:0{36}|420{35}|20c0{21})/i

type Known = Pick<Ctx, 'settlerAddress' | 'routingPartners'>

/**
 * Whether an address is a token, a contract that this service or a partner calls, or the settler's account, so that nobody there can spend
 * money.
 */
export function isServiceAddress({ settlerAddress, routingPartners }: Known, address: Address): boolean {
  if (contracts.has(address.toLowerCase()) || reserved.test(address) || sameAddress(address, settlerAddress))
    return true
  const partners = Object.values(routingPartners).flatMap((ofEnvironment) => Object.values(ofEnvironment))
  return partners.some((partner) => partner.contracts.some((contract) => sameAddress(contract, address)))
}

/** Throws a 422 for an address that can receive money and never spend it; `path` is the pointer to the field in the body. */
export function refuseServiceAddress(ctx: Known, address: Address, path: string): void {
  if (isServiceAddress(ctx, address)) throw lostAt(path)
}

const decimalsCall = selectorOf('decimals()')
const supplyCall = selectorOf('totalSupply()')

/**
 * Throws a 422 for an address that is a token's contract on its network, whether the service knows the token or not. Other contracts are
 * accepted as smart accounts. Nothing is refused if the node does not respond or the network has none.
 */
export async function refuseToken(ctx: Ctx, network: Network, address: Address): Promise<void> {
  if (!ctx.chains.configured.some(({ name }) => name === network.name)) return
  const chain = ctx.chains.on(network)
  if (await isToken(chain, address).catch(isNodeFault)) throw lostAt('/address')
}

async function isToken(chain: Chain, address: Address): Promise<boolean> {
  if ((await chain.code(address)) === '0x') return false
  const responses = await Promise.all([decimalsCall, supplyCall].map((data) => chain.call(address, data)))
  const [decimals = '0x', supply = '0x'] = responses
  return isWord(decimals) && isWord(supply) && BigInt(decimals) <= 255n
}

function isWord(response: Hex): boolean {
  return response.length === 66
}

/** A call that the contract refuses looks like a node fault: such a contract is not a token. */
function isNodeFault(error: unknown): false {
  if (isProblem(error, 'chain-unavailable')) return false
  throw error
}

function lostAt(path: string): Error {
  const message = 'is a token or a contract or account of this service: money sent there is lost'
  return failPlatform('validation-error', { errors: [{ path, message }] })
}

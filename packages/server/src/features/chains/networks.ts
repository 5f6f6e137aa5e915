import {
  type Address,
  type Chain,
  multicall3Address,
  type Network,
  networks,
  permit2Address,
  permit2Proxies,
  resolveNetwork,
  sameAddress,
  tempoFeeManager,
  tempoNonceManager,
} from '@purser/protocol'
import type { RoutingPorts } from '../../partners/routing/port.ts'
import type { Environment } from '../../platform/ctx.ts'
import { defineErrors, failPlatform } from '../../platform/errors.ts'

export const fail = defineErrors({
  'chain-not-found': {
    status: 404,
    title: 'Chain Not Found',
    detail: 'No such chain.',
    causes: ['No chain has this name. Use names such as `base` or `ethereum`, not chain ids or CAIP-2 ids.'],
    fix: 'List the names with `GET /wallet-infra/chains`.',
  },
  'chain-not-available': {
    status: 422,
    title: 'Chain Not Available',
    detail: 'A live key cannot use a test chain. Use a live chain, or a test key.',
    causes: ['A live key named a test network such as `base-sepolia`.'],
    fix: 'Send the name of the main network (`base`), or use a test key: with it `base` means Base Sepolia, so that the same code runs in both environments.',
  },
})

/** Returns the network of a chain name for this caller; refuses a live key's test chain. */
export function networkFor(chain: Chain, environment: Environment): Network {
  const network = resolveNetwork(chain, environment)
  if (network === undefined) throw fail('chain-not-available')
  return network
}

/** Tempo's guard that keeps money which a recipient's policy refuses (TIP-1028). */
export const policyGuard = '0xb10c000000000000000000000000000000000000'

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

/** The settler's account, and the partners whose contracts the service calls. */
interface Known extends Pick<RoutingPorts, 'routingPartners'> {
  readonly settlerAddress: Address
}

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

/** The refusal of an address that can receive money and never spend it. */
export function lostAt(path: string): Error {
  const message = 'is a token or a contract or account of this service: money sent there is lost'
  return failPlatform('validation-error', { errors: [{ path, message }] })
}

import { parseArgs } from 'node:util'
import { tools } from './generated/tools.ts'
import { groupOf, isReading, type Tool } from './tool.ts'

/** The address on which the HTTP server listens, and those by which clients reach it. */
export interface Listening {
  readonly host: string
  readonly port: number
  readonly hosts: readonly string[]
  /** Number of trusted proxies in front of the server, each of which appends to `X-Forwarded-For`. */
  readonly proxies: number
}

/** The parsed command line: help or version, the tools to serve, or a usage error. Without `http` it serves stdio. */
export type ParsedOptions =
  | { readonly kind: 'help' | 'version' }
  | { readonly kind: 'serve'; readonly tools: readonly Tool[]; readonly http: Listening | undefined }
  | { readonly kind: 'not-understood'; readonly why: string }

const groups = [...new Set(tools.map(groupOf))]

/** Reads the command line. An unknown group is an error, so that a typo never serves other tools than intended. */
export function readOptions(args: readonly string[]): ParsedOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
        'allow-changes': { type: 'boolean' },
        'allow-money': { type: 'boolean' },
        only: { type: 'string' },
        http: { type: 'string' },
        hosts: { type: 'string' },
        proxies: { type: 'string' },
      },
    })
    if (values.help === true) return { kind: 'help' }
    if (values.version === true) return { kind: 'version' }
    const isAllowed = (tool: Tool): boolean =>
      isReading(tool) || values[tool.effect === 'moves-money' ? 'allow-money' : 'allow-changes'] === true
    const http = listeningOf(values)
    return { kind: 'serve', tools: offered(values.only?.split(','), isAllowed), http }
  } catch (error) {
    return { kind: 'not-understood', why: error instanceof Error ? error.message : String(error) }
  }
}

function offered(only: readonly string[] = groups, isWanted: (tool: Tool) => boolean): readonly Tool[] {
  const unknown = only.find((group) => !groups.includes(group))
  if (unknown !== undefined) throw new Error(`Unknown tool group ${unknown}. Groups: ${groups.join(', ')}.`)
  return tools.filter((tool) => only.includes(groupOf(tool)) && isWanted(tool))
}

/** `8788`, `127.0.0.1:8788` or `[::1]:8788`. */
const addressPattern = /^(?:(?:\[([0-9a-f:]+)\]|([a-z0-9.-]+)):)?(\d{1,5})$/i

function listeningOf({
  http: address,
  hosts,
  proxies,
}: {
  readonly http?: string
  readonly hosts?: string
  readonly proxies?: string
}): Listening | undefined {
  if (address === undefined) {
    if (hosts !== undefined || proxies !== undefined) throw new Error('--hosts and --proxies are for --http.')
    return undefined
  }
  if (proxies !== undefined && !/^\d$/.test(proxies))
    throw new Error(`--proxies takes a number from 0 to 9; not ${proxies}.`)
  const [, v6, name, digits] = addressPattern.exec(address) ?? []
  const port = Number(digits)
  if (digits === undefined || port > 65_535) throw new Error(`--http ${address} is not a port or a host:port.`)
  const names = hosts?.split(',') ?? []
  const bad = names.find((one) => !/^(?:[a-z0-9.-]+|\[[0-9a-f:]+\])$/i.test(one))
  if (bad !== undefined)
    throw new Error(`--hosts takes host names without a port, such as mcp.example.com; not ${bad}.`)
  return {
    host: v6 ?? name ?? '127.0.0.1',
    port,
    hosts: names.map((one) => one.toLowerCase()),
    proxies: Number(proxies ?? 0),
  }
}

export const usage: string = `usage: purser-mcp [--allow-changes] [--allow-money] [--only <groups>] [--http [<host>:]<port>] [--hosts <names>] [--proxies <n>]

Serves Purser's tools to agents over the Model Context Protocol: to one on stdin and stdout, or to many over HTTP.
Without options it offers only tools that change nothing.

  --allow-changes  also tools that add something, or end it
  --allow-money    also tools that move money: pay_and_fetch, transfers, withdrawals
  --only <groups>  only tools of these groups, separated by commas: ${groups.join(',')}
  --http <address> serve Streamable HTTP at this port or host:port, path /mcp; without a host at 127.0.0.1
  --hosts <names>  with --http: the host names by which clients reach it besides localhost, separated by commas
  --proxies <n>    with --http: how many proxies before it add the address of their caller to X-Forwarded-For; default 0
  --version, -v
  --help, -h

The service and the key are those of PURSER_BASE_URL and PURSER_API_KEY, or what purser login keeps. With --http each
client sends its own key as a bearer token, and the key kept here is not used.
`

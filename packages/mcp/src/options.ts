import { parseArgs } from 'node:util'
import { tools } from './generated/tools.ts'
import { groupOf, isReading, type Tool } from './tool.ts'

/** The parsed command line: help or version, the tools to serve, or a usage error. */
export type ParsedOptions =
  | { readonly kind: 'help' | 'version' }
  | { readonly kind: 'serve'; readonly tools: readonly Tool[] }
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
      },
    })
    if (values.help === true) return { kind: 'help' }
    if (values.version === true) return { kind: 'version' }
    const isAllowed = (tool: Tool): boolean =>
      isReading(tool) || values[tool.effect === 'moves-money' ? 'allow-money' : 'allow-changes'] === true
    return offered(values.only?.split(','), isAllowed)
  } catch (error) {
    return { kind: 'not-understood', why: error instanceof Error ? error.message : String(error) }
  }
}

function offered(only: readonly string[] = groups, isWanted: (tool: Tool) => boolean): ParsedOptions {
  const unknown = only.find((group) => !groups.includes(group))
  if (unknown !== undefined)
    return { kind: 'not-understood', why: `There are no tools ${unknown}: ${groups.join(', ')}.` }
  return { kind: 'serve', tools: tools.filter((tool) => only.includes(groupOf(tool)) && isWanted(tool)) }
}

export const usage: string = `usage: purser-mcp [--allow-changes] [--allow-money] [--only <groups>]

Serves Purser's tools to an agent over the Model Context Protocol, on stdin and stdout. Without options it
offers only tools that change nothing.

  --allow-changes  also tools that add something, or end it
  --allow-money    also tools that move money: pay_and_fetch, transfers, withdrawals
  --only <groups>  only tools of these groups, separated by commas: ${groups.join(',')}
  --version, -v
  --help, -h

The key and the service are those of PURSER_API_KEY and PURSER_BASE_URL, or what purser login keeps.
`

import { parseArgs } from 'node:util'
import { tools } from './generated/tools.ts'
import { isReading, roomOf, type Tool } from './tool.ts'

/** What the program was asked to do: one of the two questions, to serve these tools, or nothing that it understands. */
export type Asked =
  | { readonly kind: 'help' | 'version' }
  | { readonly kind: 'serve'; readonly tools: readonly Tool[] }
  | { readonly kind: 'not-understood'; readonly why: string }

const rooms = [...new Set(tools.map(roomOf))]

/** Reads the command line. A room that does not exist is refused, so that nobody believes to have fewer tools than there are. */
export function readOptions(args: readonly string[]): Asked {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
        'read-only': { type: 'boolean' },
        only: { type: 'string' },
      },
    })
    if (values.help === true) return { kind: 'help' }
    if (values.version === true) return { kind: 'version' }
    return offered(values.only?.split(','), values['read-only'] === true ? isReading : () => true)
  } catch (error) {
    return { kind: 'not-understood', why: error instanceof Error ? error.message : String(error) }
  }
}

function offered(only: readonly string[] = rooms, isWanted: (tool: Tool) => boolean): Asked {
  const unknown = only.find((room) => !rooms.includes(room))
  if (unknown !== undefined)
    return { kind: 'not-understood', why: `There are no tools ${unknown}: ${rooms.join(', ')}.` }
  return { kind: 'serve', tools: tools.filter((tool) => only.includes(roomOf(tool)) && isWanted(tool)) }
}

export const usage: string = `usage: purser-mcp [--read-only] [--only <rooms>]

Serves Purser's tools to an agent over the Model Context Protocol, on stdin and stdout.

  --read-only      only tools that change nothing
  --only <rooms>   only the tools of these, with commas: ${rooms.join(',')}
  --version, -v
  --help, -h

The key and the service are those of PURSER_API_KEY and PURSER_BASE_URL, or what purser login keeps.
`

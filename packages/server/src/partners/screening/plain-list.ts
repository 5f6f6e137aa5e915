import { addEntry, type ListReader, ListRefused } from './sanctions-list.ts'

const lineCharactersMax = 512
const dated = /^#\s*list-date:\s*(\d{4}-\d\d-\d\d)\s*$/

/**
 * Parses a list with one address per line. Ignores addresses of other chains and lines that begin with `#`, except `# list-date: YYYY-MM-DD`, which
 * gives the list's date.
 */
export function plainList(): ListReader {
  const addresses = new Set<string>()
  let listDate: string | undefined
  let malformed = 0
  let rest = ''
  const take = (line: string): void => {
    const entry = line.trim()
    if (entry.length > lineCharactersMax) throw new ListRefused('malformed', 'a line of the list is too long')
    if (entry.startsWith('#')) listDate = dated.exec(entry)?.[1] ?? listDate
    else if (!addEntry(addresses, entry)) malformed += 1
  }
  return {
    write(chunk) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) take(line)
      if (rest.length > lineCharactersMax) throw new ListRefused('malformed', 'a line of the list is too long')
    },
    end() {
      take(rest)
      return { format: 'plain', listDate, addresses, malformed }
    },
  }
}

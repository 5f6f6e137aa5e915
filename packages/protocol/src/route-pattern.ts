import { parseTypeId } from './typeid.ts'

/** The placeholder for a path segment that differs between calls. */
const variable = '{id}'

/**
 * Returns the pattern of a paid route: `/users/123`, `/users/456/` and Express's `/users/:id` all have the pattern
 * `/users/{id}`. Each segment is replaced by `{id}` if it is a parameter of a router (`:name`, `[name]`, `{name}`, `*`)
 * or looks like an identifier (a number, a UUID, hexadecimal of 16 digits or more, a TypeID, 22 or more characters of
 * base64url that are not words). The query, repeated slashes and a slash at the end are removed; letters keep their
 * case. The pattern of a pattern is the pattern itself. Accepts any text and never throws; the caller limits its
 * length.
 *
 * @example
 * routePatternOf('/users/123/') // '/users/{id}'
 * routePatternOf('/users/:id') // '/users/{id}'
 * routePatternOf('/forecast?day=1') // '/forecast'
 */
export function routePatternOf(path: string): string {
  const segments = withoutQuery(path)
    .replace(/(?<!\{)\{+\//g, '/')
    .split('/')
  const kept = segments.filter((segment) => segment !== '' && segment !== '.')
  return `/${kept.map((segment) => (isParameter(segment) || isIdentifier(segment) ? variable : segment)).join('/')}`
}

/** Express 4 writes an optional parameter as `:name?`, so a question mark before a slash does not begin a query. */
function withoutQuery(path: string): string {
  return path.replace(/(:\w{1,64})\?(?=\/)/g, '$1').replace(/[?#].*$/s, '')
}

function isParameter(segment: string): boolean {
  const isBracketed = /^\[.*\]$|^\{.*\}$/s.test(segment)
  return isBracketed || segment.startsWith('*') || (segment.startsWith(':') && segment.length > 1)
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

function isIdentifier(segment: string): boolean {
  if (/^\d+$/.test(segment) || uuid.test(segment) || /^(?:0x)?[0-9a-f]{16,}$/i.test(segment)) return true
  if (parseTypeId(segment) !== undefined) return true
  return /^[A-Za-z0-9_-]{22,}$/.test(segment) && !isWords(segment)
}

/**
 * Whether a segment consists of words. A long name of a route has only characters of base64url:
 * `current-weather-conditions`, `getHistoricalForecast`.
 */
function isWords(segment: string): boolean {
  return (
    /^(?:[a-z]+\d*|\d+)(?:[-_](?:[a-z]+\d*|\d+))*$/.test(segment) || /^[A-Za-z][a-z]*(?:[A-Z][a-z]+)*$/.test(segment)
  )
}

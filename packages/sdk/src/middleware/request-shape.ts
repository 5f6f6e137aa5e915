import { routePatternOf } from '@purser/protocol'
import type { RouteSnapshot } from '../registry.ts'

/** The names and kinds of a request's inputs. `route` is the router's pattern, if the router exposes it. */
export interface RequestShape {
  readonly route?: string | undefined
  readonly headerNames: readonly string[]
  /** The body, if the framework has parsed it. */
  readonly body?: unknown
}

type Param = NonNullable<RouteSnapshot['queryParams']>[number]

const paramsMax = 32
const nameLengthMax = 64

/** Headers of clients, proxies and payments in general. They say nothing about the route. */
const usual =
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade.*|content-.*|user-agent|accept.*|cache-control|pragma|expect|date|via|forwarded|origin|referer|cookie|authorization|dnt|priority|range|if-.*|traceparent|tracestate|baggage|x-forwarded-.*|x-real-ip|x-request-id|cf-.*|sec-.*|payment.*|x-payment.*|x-service-.*)$/

/** The names of the headers that are specific to the route. */
export function headersSeen(names: readonly string[]): Param[] {
  return paramsOf(names.filter((name) => !usual.test(name.toLowerCase())).map((name) => [name.toLowerCase(), 'string']))
}

/** The names and kinds of the query parameters, without values. */
export function querySeen(query: URLSearchParams): Param[] {
  return paramsOf([...new Set(query.keys())].map((name) => [name, kindOfText(query.getAll(name))]))
}

/** The names and kinds of the members of a parsed body, without values. Empty unless the body is a plain object. */
export function bodySeen(body: unknown): Param[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return []
  const prototype: unknown = Object.getPrototypeOf(body)
  if (prototype !== Object.prototype && prototype !== null) return []
  return paramsOf(Object.entries(body).map(([name, value]) => [name, kindOf(value)]))
}

/** The media type of a `Content-Type`, without its parameters. */
export function mediaTypeOf(contentType: string | undefined): string | undefined {
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? ''
  return /^[\w.+-]{1,64}\/[\w.+-]{1,128}$/.test(type) ? type : undefined
}

/** Whether a router's pattern consists of names and parameters only, without wildcards and expressions. */
export function isPlainPattern(pattern: string): boolean {
  return /^(?:\/(?::\w+\??|[\w.~%-]+)|\{\/:\w+\})*\/?$/.test(pattern)
}

function paramsOf(named: readonly (readonly [name: string, type: string])[]): Param[] {
  return named
    .filter(([name]) => isName(name))
    .slice(0, paramsMax)
    .map(([name, type]) => ({ name, type, required: false }))
}

/** A name that looks like an identifier is a value in place of a name, such as `?<token>`. */
function isName(name: string): boolean {
  const isStorable = name.isWellFormed() && !name.includes('\u0000')
  return name !== '' && name.length <= nameLengthMax && isStorable && routePatternOf(`/${name}`) !== '/{id}'
}

function kindOfText(values: readonly string[]): string {
  if (values.length > 1) return 'array'
  const value = values[0] ?? ''
  if (/^-?\d+(?:\.\d+)?$/.test(value)) return 'number'
  return value === 'true' || value === 'false' ? 'boolean' : 'string'
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

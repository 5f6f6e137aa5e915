import { z } from 'zod'
import type { Deps } from '../ctx.ts'
import { failPlatform, Problem } from '../errors.ts'
import { plainFaults } from '../fault-words.ts'
import type { Operation } from '../operation.ts'
import { groupMetadata, unstorableText, unstorableTexts } from '../wire.ts'
import { hasUnusualEscape, readJson, shapeOf } from './json.ts'
import { faultsMax, validationProblem } from './problem.ts'
import type { RawRequest } from './success-response.ts'

/** Created once: a schema is compiled when it is first used, which costs more than a request. */
const noQuery = z.strictObject({})
const noInput = z.strictObject({})

/** Largest body that costs nothing beyond its request. */
const freeBytesMax = 4_096
/** Bytes of a body for each token, as of a response: about one millisecond of CPU. */
const bytesPerToken = 65_536
/** Values and names of a body for each token: parsing, checking and writing them takes about a millisecond of CPU. */
const nodesPerToken = 1_000

/**
 * Returns the validated parts of a request, or throws one 422 with all faults. A body is counted against the caller's limits before it is parsed:
 * what parsing and checking it takes is the work of the request, whatever its outcome.
 */
export function readInput(
  operation: Operation<Deps>,
  request: RawRequest,
): { params: unknown; query: unknown; body: unknown; headers: unknown; stream: unknown } {
  const params = operation.params?.safeParse(request.params)
  if (params?.success === false) throw unknownResource(operation)
  const querySchema = operation.query ?? noQuery
  const query = querySchema.safeParse(groupMetadata(request.query, querySchema), plainFaults)
  const given = operation.streamsInput === undefined ? readBody(operation, request) : undefined
  const body =
    operation.streamsInput === undefined ? (operation.input ?? noInput).safeParse(given, plainFaults) : undefined
  const issues = [query, body].flatMap((parsed) => (parsed?.success === false ? parsed.error.issues : []))
  // Of more faults than are listed no further ones are needed.
  if (operation.takesAnyText !== true && issues.length < faultsMax) {
    const texts = [request.params, request.query, hasUnusualEscape(request.body) ? given : undefined]
    issues.push(...textIssues(texts, issues))
  }
  if (issues.length > 0) throw validationProblem(issues)
  return {
    params: params?.data,
    query: query.data,
    body: operation.input === undefined ? undefined : body?.data,
    headers: request.headers,
    stream: request.stream,
  }
}

function readBody(operation: Operation<Deps>, { body, headers, charge }: RawRequest): unknown {
  if (body.length === 0) return {}
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw failPlatform('unsupported-media-type')
  if (body.length <= freeBytesMax) return readJson(body)
  const shape = shapeOf(body)
  // One charge: after the first of two, a caller could lack the tokens for the second forever.
  const cost = Math.ceil(body.length / bytesPerToken + shape.nodes / (operation.nodesPerToken ?? nodesPerToken)) - 1
  if (cost > 0) charge?.(cost)
  return readJson(body, shape)
}

/** Text that PostgreSQL cannot store is a fault anywhere in the request; a value that its schema already refused is not listed twice. */
function textIssues(inputs: readonly unknown[], known: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const isKnown = (path: readonly PropertyKey[]): boolean =>
    known.some((issue) => issue.path.length > 0 && issue.path.every((part, index) => String(part) === path[index]))
  return inputs
    .flatMap((input) => unstorableTexts(input))
    .filter((path) => !isKnown(path))
    .map((path) => ({ code: 'custom', path: [...path], message: unstorableText, input: undefined }))
}

/** An id in the path that cannot exist gets the same response as one that does not. */
function unknownResource(operation: Operation<Deps>): Problem {
  const known = Object.entries(operation.errors ?? {}).find(
    ([code, entry]) => code.endsWith('-not-found') && entry.status === 404,
  )
  return known === undefined ? failPlatform('not-found') : new Problem(known[0], known[1])
}

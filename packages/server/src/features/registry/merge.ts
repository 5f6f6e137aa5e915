import { paramsMax, type RouteParam } from './schema.ts'

/**
 * What is known of a route's parameters after another look at it. One call shows some of them, so what was seen before stays, and what is
 * seen now takes the place of what had its name; over 64, the oldest go.
 */
export function mergeParams(before: readonly RouteParam[], now: readonly RouteParam[]): RouteParam[] {
  const byName = new Map<string, RouteParam>()
  for (const param of [...now, ...before]) if (!byName.has(param.name)) byName.set(param.name, param)
  return [...byName.values()].slice(0, paramsMax)
}

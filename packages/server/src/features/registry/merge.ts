import { paramsMax, type RouteParam } from './schema.ts'

/**
 * Merges a route's known parameters with those of another report. One call shows only some of them, so known ones stay, and new
 * ones replace those with the same name; above 64, the oldest are dropped.
 */
export function mergeParams(before: readonly RouteParam[], now: readonly RouteParam[]): RouteParam[] {
  const byName = new Map<string, RouteParam>()
  for (const param of [...now, ...before]) if (!byName.has(param.name)) byName.set(param.name, param)
  return [...byName.values()].slice(0, paramsMax)
}

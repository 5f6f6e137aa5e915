import { isSearchText, type OpenSearch, readOpen } from '../../ui/search.ts'

export const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export const statusNames = { '2xx': 'Succeeded', '4xx': 'Refused', '5xx': 'Failed' } as const

export interface LogsSearch extends OpenSearch {
  readonly status?: string
  readonly method?: (typeof methods)[number]
  readonly route?: string
  readonly apiKeyId?: string
}

/** Reads the filters of the request log from an address. `status` is a status such as 404, or a class such as 4xx. */
export function readLogsSearch(search: Readonly<Record<string, unknown>>): LogsSearch {
  const { status, route, apiKeyId } = search
  const method = methods.find((one) => one === search.method)
  const text = typeof status === 'number' ? String(status) : status
  return {
    ...readOpen(search),
    ...(typeof text === 'string' && /^[1-5](\d\d|xx)$/.test(text) && { status: text }),
    ...(method !== undefined && { method }),
    ...(isSearchText(route) && { route: route.slice(0, 200) }),
    ...(isSearchText(apiKeyId) && apiKeyId.startsWith('key_') && { apiKeyId }),
  }
}

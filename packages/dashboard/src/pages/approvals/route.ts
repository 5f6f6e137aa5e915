import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { type OpenSearch, readOpen } from '../../ui/search.ts'

export interface ApprovalsSearch extends OpenSearch {
  readonly view?: 'history'
}

export const approvalsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/approvals',
    validateSearch: (search: Readonly<Record<string, unknown>>): ApprovalsSearch => ({
      ...readOpen(search),
      ...(search.view === 'history' && { view: 'history' as const }),
    }),
    component: lazyRouteComponent(() => import('./approvals-page.tsx'), 'ApprovalsPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/approvals/$approvalId',
    component: lazyRouteComponent(() => import('./approval-page.tsx'), 'ApprovalPage'),
  }),
] as const

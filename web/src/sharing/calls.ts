/** Requests about access to a conversation, loaded with the components that show it. */

import { at, get, post, put, remove } from "../api/client";
import type {
  ConversationSummary,
  MemberList,
  MemberRole,
  MemberView,
  NewInvitation,
  NewLink,
  NewShareView,
  PresenceView,
  PresentUser,
  ShareList,
  ShareView,
} from "../api/generated";
import { withBase } from "../basePath";

export type Role = MemberRole["role"];

export const members = async (id: string): Promise<MemberView[]> => (await get<MemberList>(at`/api/conversations/${id}/members`)).items;
export const setMember = (id: string, user: string, role: Role): Promise<MemberView> =>
  put(at`/api/conversations/${id}/members/${user}`, { role });
export const removeMember = (id: string, user: string): Promise<void> => remove(at`/api/conversations/${id}/members/${user}`);
export const transfer = (id: string, user: string): Promise<ConversationSummary> => post(at`/api/conversations/${id}/transfer`, { user });
export const shares = async (id: string): Promise<ShareView[]> => (await get<ShareList>(at`/api/conversations/${id}/shares`)).items;
export const invite = (id: string, body: NewInvitation): Promise<NewShareView> => post(at`/api/conversations/${id}/invitations`, body);
export const link = (id: string, body: NewLink): Promise<NewShareView> => post(at`/api/conversations/${id}/links`, body);
export const revoke = (id: string, share: string): Promise<void> => remove(at`/api/conversations/${id}/shares/${share}`);
export const accept = (token: string): Promise<ConversationSummary> => post("/api/invitations/accept", { token });
export const presence = async (id: string): Promise<PresentUser[]> => (await get<PresenceView>(at`/api/conversations/${id}/presence`)).users;
export const typing = (id: string, on: boolean): Promise<void> => post(at`/api/conversations/${id}/typing`, { on });

/** Browsers never send the part after # to a server, so the token is in no log. */
export const linkAddress = (token: string): string => `${location.origin}${withBase("/shared")}#${token}`;
export const invitationAddress = (token: string): string => `${location.origin}${withBase("/")}#invitation=${token}`;

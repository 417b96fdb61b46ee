(* The schemas of kernel/lemmas.py, proved: one theorem for each statement of `Statements.v`. *)

From Coq Require Import List ZArith Lia.
From MMCache Require Import FiniteSets Statements.
Import ListNotations.
Open Scope Z_scope.

Theorem for_every_1 : for_every_1_statement.
Proof. intros T D lemma H. exact H. Qed.

Theorem for_every_2 : for_every_2_statement.
Proof. intros T T1 D D1 lemma H. exact H. Qed.

Theorem for_every_3 : for_every_3_statement.
Proof. intros T T1 T2 D D1 D2 lemma H. exact H. Qed.

Theorem nothing : nothing_statement.
Proof. intros T D x. exact I. Qed.

(* --- the operations have the members that the solvers are told ----------------------------------- *)

Theorem members_of_empty : members_of_empty_statement.
Proof. intros T D x. apply member_empty. Qed.

Theorem members_of_insert : members_of_insert_statement.
Proof. intros T D A x y. apply member_insert. Qed.

Theorem members_of_remove : members_of_remove_statement.
Proof. intros T D A x y. apply member_remove. Qed.

Theorem members_of_union : members_of_union_statement.
Proof. intros T D A B x. apply member_union. Qed.

Theorem members_of_minus : members_of_minus_statement.
Proof. intros T D A B x. apply member_minus. Qed.

(* --- totals ------------------------------------------------------------------------------------ *)

Theorem non_negative : non_negative_statement.
Proof.
  intros T D [xs N] weight W. unfold total. simpl. clear N.
  induction xs as [|x xs IH]; simpl; [lia|]. specialize (W x). lia.
Qed.

Theorem emptiness : emptiness_statement.
Proof.
  intros T D A weight _ H. rewrite <- (total_empty weight). apply total_of_members.
  intro x. split; [intro M; destruct (H x M) | intros []].
Qed.

Theorem insertion : insertion_statement.
Proof.
  intros T D A x weight _. destruct (member_dec A x) as [M|M].
  - rewrite (total_of_members weight (insert A x) A); [lia|].
    intro y. rewrite member_insert. split; [intros [H|H]; [exact H | subst; exact M] | auto].
  - apply total_new. exact M.
Qed.

Theorem subtraction : subtraction_statement.
Proof.
  intros T D A B weight _ S.
  rewrite (total_disjoint weight (minus A B) B A); [lia | |].
  - intro x. rewrite member_minus. destruct (member_dec B x) as [M|M]; [|tauto].
    specialize (S x M). tauto.
  - intros x M. rewrite member_minus in M. tauto.
Qed.

Theorem removal : removal_statement.
Proof.
  intros T D A x weight _. destruct (member_dec A x) as [M|M].
  - rewrite (total_of_members weight A (insert (remove A x) x)).
    + rewrite total_new; [lia|]. rewrite member_remove. tauto.
    + intro y. rewrite member_insert, member_remove. destruct (same y x); subst; tauto.
  - rewrite (total_of_members weight (remove A x) A); [lia|].
    intro y. rewrite member_remove. split; [tauto|]. intro H. split; [exact H | congruence].
Qed.

Theorem disjoint_union : disjoint_union_statement.
Proof.
  intros T D A B weight _ H. apply total_disjoint.
  - intro x. apply member_union.
  - intros x M N. exact (H x (conj M N)).
Qed.

Theorem monotone : monotone_statement.
Proof.
  intros T D A B weight W S.
  assert (P := subtraction T D B A weight W S).
  assert (N := non_negative T D (minus B A) weight W). lia.
Qed.

Theorem union_bound : union_bound_statement.
Proof.
  intros T D A B weight W.
  rewrite (total_disjoint weight A (minus B A) (union A B)).
  - assert (M : total (minus B A) weight <= total B weight); [|lia].
    apply (monotone T D); [exact W|]. intro x. rewrite member_minus. tauto.
  - intro x. rewrite member_union, member_minus. destruct (member_dec A x); tauto.
  - intros x M. rewrite member_minus. tauto.
Qed.

(* --- least and greatest ------------------------------------------------------------------------ *)

Lemma least {T : Type} (key : T -> Z) (xs : list T) :
  (exists x, In x xs) -> exists x, In x xs /\ (forall y, In y xs -> key x <= key y).
Proof.
  induction xs as [|x xs IH]; intros [z Z]; [destruct Z|].
  destruct xs as [|w ws].
  - exists x. split; [simpl; auto|]. intros y [H|[]]. subst. lia.
  - destruct IH as [m [M L]]; [exists w; simpl; auto|].
    destruct (Z_le_gt_dec (key x) (key m)) as [C|C].
    + exists x. split; [left; reflexivity|].
      intros y [H|H]; [subst; lia|]. specialize (L y H). lia.
    + exists m. split; [right; exact M|].
      intros y [H|H]; [subst; lia|]. exact (L y H).
Qed.

Theorem has_first : has_first_statement.
Proof.
  intros T D where_ key [xs H] [z Z].
  destruct (least key xs) as [x [M L]]; [exists z; apply H; exact Z|].
  exists x. split; [apply H; exact M|]. intros y Y. apply L, H, Y.
Qed.

Theorem has_earliest : has_earliest_statement.
Proof.
  intros T D where_ key C N [z Z].
  assert (G : forall n : nat, (exists x, where_ x /\ key x < Z.of_nat n) ->
           exists x, where_ x /\ (forall y, where_ y -> key x <= key y)).
  { induction n as [|n IH]; intros [x [W L]]; [specialize (N x); lia|].
    destruct (C (exists y, where_ y /\ key y < Z.of_nat n)) as [H|H]; [apply IH, H|].
    exists x. split; [exact W|]. intros y Y.
    destruct (Z_lt_le_dec (key y) (key x)) as [K|K]; [|exact K].
    exfalso. apply H. exists y. split; [exact Y | lia]. }
  apply (G (Z.to_nat (key z + 1))). exists z. split; [exact Z|]. specialize (N z). lia.
Qed.

Theorem has_least : has_least_statement.
Proof.
  intros T D A key fact F [z Z].
  destruct (least key (elements A)) as [x [M L]]; [exists z; exact Z|].
  exists x. split; [split; [exact M | exact L] | apply F].
Qed.

Theorem has_greatest : has_greatest_statement.
Proof.
  intros T D A key fact F [z Z].
  destruct (least (fun x => - key x) (elements A)) as [x [M L]]; [exists z; exact Z|].
  exists x. split; [split; [exact M |] | apply F].
  intros y Y. specialize (L y Y). simpl in L. lia.
Qed.

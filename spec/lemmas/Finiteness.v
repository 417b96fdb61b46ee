(* What is finite: the rules by which kernel/finiteness.py argues.

   `finite P` means that a list has exactly the elements with P. The logic of the solvers is
   classical; where a rule needs the excluded middle, it has it as a premise. *)

From Coq Require Import List ZArith Lia.
From MMCache Require Import FiniteSets.
Import ListNotations.
Open Scope Z_scope.

Lemma finite_sets_are_finite {T : Type} (A : FiniteSet T) : finite (member A).
Proof. exists (elements A). intro x. reflexivity. Qed.

Lemma finite_nothing {T : Type} (P : T -> Prop) : (forall x, ~ P x) -> finite P.
Proof. intro N. exists nil. intro x. split; [intros [] | apply N]. Qed.

(* A list that has at least the elements with P can be cut down to them. *)
Lemma finite_within {T : Type} (P : T -> Prop) (xs : list T) :
  classical -> (forall x, P x -> In x xs) -> finite P.
Proof.
  intros C. revert P. induction xs as [|x xs IH]; intros P H.
  - apply finite_nothing. intros x X. exact (H x X).
  - destruct (IH (fun y => P y /\ In y xs)) as [ys Y]; [tauto|].
    destruct (C (P x)) as [X|X].
    + exists (x :: ys). intro y. simpl. rewrite Y. split.
      * intros [E|[E _]]; [subst; exact X | exact E].
      * intro E. destruct (H y E) as [F|F]; [left; exact F | right; tauto].
    + exists ys. intro y. rewrite Y. split; [tauto|].
      intro E. destruct (H y E) as [F|F]; [subst; contradiction | tauto].
Qed.

(* a conjunction, if one part of it is; a difference *)
Theorem finite_subset {T : Type} (P Q : T -> Prop) :
  classical -> finite P -> (forall x, Q x -> P x) -> finite Q.
Proof. intros C [xs H] S. apply (finite_within Q xs C). intros x X. apply H, S, X. Qed.

(* a disjunction, if both parts are; a union, an insertion, a choice between two sets *)
Theorem finite_or {T : Type} (P Q : T -> Prop) :
  finite P -> finite Q -> finite (fun x => P x \/ Q x).
Proof.
  intros [xs X] [ys Y]. exists (xs ++ ys). intro x. rewrite in_app_iff, X, Y. reflexivity.
Qed.

(* x = f y, for finitely many y *)
Theorem finite_values {S T : Type} (P : S -> Prop) (f : S -> T) :
  finite P -> finite (fun x => exists y, P y /\ x = f y).
Proof.
  intros [ys Y]. exists (map f ys). intro x. rewrite in_map_iff. split.
  - intros [y [E I]]. exists y. rewrite <- Y. auto.
  - intros [y [I E]]. exists y. rewrite Y. auto.
Qed.

(* x = c *)
Corollary finite_one {T : Type} (c : T) : finite (fun x => x = c).
Proof. exists [c]. intro x. simpl. intuition. Qed.

(* a <= x < b *)
Theorem finite_interval (a b : Z) : finite (fun x => a <= x /\ x < b).
Proof.
  exists (map (fun n => a + Z.of_nat n) (seq 0 (Z.to_nat (b - a)))).
  intro x. rewrite in_map_iff. split.
  - intros [n [E I]]. apply in_seq in I. lia.
  - intros [L U]. exists (Z.to_nat (x - a)). rewrite in_seq. lia.
Qed.

(* A pair whose parts are bounded one after the other: x by P, and y, for each such x, by Q. *)
Theorem finite_one_by_one {S T : Type} (P : S -> Prop) (Q : S -> T -> Prop) :
  finite P -> (forall x, finite (Q x)) -> finite (fun xy => P (fst xy) /\ Q (fst xy) (snd xy)).
Proof.
  intros [xs X] F. revert P X. induction xs as [|x xs IH]; intros P X.
  - apply finite_nothing. intros [x y] [H _]. apply (X x). exact H.
  - destruct (IH (fun z => In z xs)) as [rest R]; [reflexivity|].
    destruct (F x) as [ys Y].
    exists (map (pair x) ys ++ rest). intros [u v]. simpl.
    rewrite in_app_iff, in_map_iff, R, <- X. simpl. split.
    + intros [[y [E I]]|H]; [inversion E; subst; rewrite <- Y; auto | tauto].
    + intros [[E|I] H]; [subst; left; exists v; rewrite Y; auto | right; auto].
Qed.

(* exists y, R x y *)
Theorem finite_projection {S T : Type} (R : S * T -> Prop) :
  finite R -> finite (fun x => exists y, R (x, y)).
Proof.
  intros [ps H]. exists (map fst ps). intro x. rewrite in_map_iff. split.
  - intros [[u v] [E I]]. simpl in E. subst. exists v. apply H, I.
  - intros [y Y]. exists (x, y). split; [reflexivity | apply H, Y].
Qed.

(* What stands at positions below a number, one at a position, is finitely many: f i = r. *)
Theorem finite_fibre {S T : Type} (f : S -> T) (position : S -> Z) (number : T -> Z) (r : T) :
  classical ->
  (forall i, 0 <= position i /\ position i < number (f i)) ->
  (forall i j, f i = f j /\ position i = position j -> i = j) ->
  finite (fun i => f i = r).
Proof.
  intros C B I.
  assert (G : forall n : nat, finite (fun i => f i = r /\ position i < Z.of_nat n)).
  { induction n as [|n [xs X]].
    - apply finite_nothing. intros i [_ L]. destruct (B i). lia.
    - destruct (C (exists i, f i = r /\ position i = Z.of_nat n)) as [[i [F P]]|N].
      + exists (i :: xs). intro j. simpl. rewrite X. split.
        * intros [E|[E L]]; [subst; split; [reflexivity | lia] | split; [exact E | lia]].
        * intros [E L]. destruct (Z.eq_dec (position j) (Z.of_nat n)) as [Q|Q].
          -- left. apply I. split; congruence.
          -- right. split; [exact E | lia].
      + exists xs. intro j. rewrite X. split; [intros [E L]; split; [exact E | lia]|].
        intros [E L]. split; [exact E|].
        destruct (Z.eq_dec (position j) (Z.of_nat n)) as [Q|Q]; [|lia].
        exfalso. apply N. exists j. auto. }
  destruct (G (Z.to_nat (number r))) as [xs X]. exists xs. intro i. rewrite X. split; [tauto|].
  intro E. split; [exact E|]. destruct (B i) as [L U]. rewrite E in U. lia.
Qed.

(* What `largest` is taken for: the greatest value over finitely many elements, 0 if there is none. *)
Theorem largest_is_attained {T : Type} (P : T -> Prop) (value : T -> Z) :
  classical -> finite P ->
  exists n : Z,
    ((exists x, P x) -> (exists x, P x /\ value x = n) /\ (forall x, P x -> value x <= n)) /\
    (~ (exists x, P x) -> n = 0).
Proof.
  intros C [xs X]. destruct (C (exists x, P x)) as [E|N].
  - assert (G : forall ys : list T, (exists x, In x ys) ->
             exists x, In x ys /\ forall y, In y ys -> value y <= value x).
    { induction ys as [|y ys IH]; intros [z Z]; [destruct Z|].
      destruct ys as [|w ws].
      - exists y. split; [left; reflexivity|]. intros u [U|[]]. subst. lia.
      - destruct IH as [m [M L]]; [exists w; left; reflexivity|].
        destruct (Z_le_gt_dec (value y) (value m)) as [D|D].
        + exists m. split; [right; exact M|]. intros u [U|U]; [subst; lia | apply L, U].
        + exists y. split; [left; reflexivity|].
          intros u [U|U]; [subst; lia|]. specialize (L u U). lia. }
    destruct (G xs) as [m [M L]]; [destruct E as [x H]; exists x; apply X, H|].
    exists (value m). split; [|tauto]. intros _. split.
    + exists m. split; [apply X, M | reflexivity].
    + intros x H. apply L, X, H.
  - exists 0. split; [tauto | reflexivity].
Qed.
